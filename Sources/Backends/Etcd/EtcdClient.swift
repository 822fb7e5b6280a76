// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import HTTPClient
internal import PlainText
internal import PropertyList
internal import Replication
internal import Synchronization

/// Sends requests to the members of a cluster: to the one that answered last, and if that is slow, to the next one.
///
/// So a request may be carried out twice, and the caller has to find out what became of it.
final class EtcdClient: Sendable {
    let url: EtcdURL
    let proof: ServerCredentials.Proof
    let gateway: any EtcdGateway
    private let state: Mutex<State>

    private struct State {
        /// The index of the member that answered last.
        var current = 0
        var token: String?
        /// Whether the cluster has no authentication.
        var isOpen = false
        /// Whether the password was refused, and no sign-in has succeeded since.
        var isRefused = false
        /// The refusal that a watch met. The next call throws it, instead of trying the same password again.
        var refusal: EtcdRefusal?
    }

    convenience init(
        _ url: EtcdURL, _ credentials: ServerCredentials, deadline: ContinuousClock.Instant? = nil
    ) throws(RemoteError) {
        var options = HTTPOptions(for: credentials)
        options.deadline = deadline
        self.init(url, try credentials.proof, EtcdHTTP(options))
    }

    init(_ url: EtcdURL, _ proof: ServerCredentials.Proof, _ gateway: any EtcdGateway) {
        (self.url, self.proof, self.gateway) = (url, proof, gateway)
        var state = State()
        if case .token(let token) = proof { state.token = token }
        self.state = Mutex(state)
    }

    func close() { gateway.close() }

    func pause(for time: Duration) async { await gateway.pause(for: time) }

    /// The member that answered last.
    var member: HTTPAddress { url.members[state.withLock(\.current)] }

    // MARK: Calls

    func range(_ range: EtcdRange) async throws(RemoteError) -> (rows: EtcdRows, revision: Int64) {
        let answer = try await call("/v3/kv/range", range.json)
        return try RemoteError.reading { () throws(EtcdFlaw) in
            (try EtcdRows(answer, to: range), try EtcdHeader(of: answer).revision)
        }
    }

    /// Commits a transaction. If a response is lost, the transaction may be applied twice.
    func commit(_ transaction: EtcdTransaction) async throws(RemoteError) -> EtcdOutcome {
        let answer = try await call("/v3/kv/txn", transaction.json, bytes: transaction.size)
        return try RemoteError.reading { () throws(EtcdFlaw) in try EtcdOutcome(answer, to: transaction) }
    }

    /// Sends a request to any member that can answer it.
    func call(_ path: String, _ question: Value, bytes: Int = 0) async throws(RemoteError) -> Value {
        do throws(EtcdFailure) { return try await ask(path, question, bytes: bytes) } catch {
            let failure = error.remoteError(self)
            guard error.canTryNextMember, url.members.count > 1 else { throw failure }
            throw RemoteError(
                failure.code,
                failure.message + " No other member could answer either; more than half of them may be down.",
                retryAfter: failure.retryAfter)
        }
    }

    /// Sends a request to every member in turn, and waits longer in each round.
    /// - Parameter bytes: about how large the request or the response may be; a slow cluster needs longer for more.
    func ask(_ path: String, _ question: Value, bytes: Int) async throws(EtcdFailure) -> Value {
        var failure: EtcdFailure?
        for time in patience(bytes) {
            var isHopeless = true
            for _ in url.members {
                let asked = member
                do throws(EtcdFailure) { return try await ask(path, question, within: time) } catch {
                    guard error.canTryNextMember else { throw error }
                    if !error.isImmediate { isHopeless = false }
                    failure = error
                    moveOn(from: asked)
                }
            }
            if isHopeless { break }
            // A member waits until its revision reaches the one at which the token was issued. In a cluster restored
            // from a backup that may take long.
            forgetToken()
            await gateway.pause(for: .milliseconds(50))
        }
        throw failure ?? .http(.closed, member)
    }

    /// Returns how long a member may stay silent, for each round. A dead member never answers. One that is cut off
    /// forwards requests to a leader that is gone, and waits for 7 s. So the first round is short if there are others
    /// to ask; the later ones allow for slow members.
    private func patience(_ bytes: Int) -> [Duration] {
        let times: [Double] = url.members.count > 1 ? [1, 4] : [5, 10]
        let slow = times.map { Duration.seconds($0 * (1 + Double(bytes) / 100_000)) }
        return url.members.count > 1 ? [.milliseconds(300)] + slow : slow
    }

    /// Makes the next member the current one, if this member still is.
    func moveOn(from member: HTTPAddress) {
        state.withLock { state in
            if url.members[state.current] == member { state.current = (state.current + 1) % url.members.count }
        }
    }

    /// Sends a request to the current member, with a new token if the member doesn't know the old one.
    private func ask(_ path: String, _ body: Value, within time: Duration) async throws(EtcdFailure) -> Value {
        let token = try await token(anew: false, time)
        do throws(EtcdFailure) { return try await send(path, body, token, to: member, time) } catch {
            guard case .refusal(let refusal) = error, refusal.isStaleToken || refusal.requiresUser,
                case .password = proof
            else { throw error }
        }
        let newToken = try await self.token(anew: true, time)
        return try await send(path, body, newToken, to: member, time)
    }

    private func send(
        _ path: String, _ body: Value, _ token: String?, to member: HTTPAddress, _ time: Duration
    ) async throws(EtcdFailure) -> Value {
        try await gateway.ask(EtcdQuestion(path, body, token: token), of: member, within: time).answer
    }

    /// What a member reports of itself, to any client.
    struct Status {
        let version: String
        let hasLeader: Bool
        let alarms: [String]
        /// Seconds since 1970, by the member's clock.
        let time: Int?
    }

    func status(of member: HTTPAddress, within time: Duration) async throws(EtcdFailure) -> Status {
        let (answer, time) = try await gateway.ask(
            EtcdQuestion("/v3/maintenance/status", .dictionary([:])), of: member, within: time)
        return Status(
            version: (answer["version"]?.text ?? "").cleaned(atMost: 40),
            hasLeader: !["", "0"].contains(answer["leader"]?.text ?? ""),
            alarms: (answer["errors"]?.elements ?? []).prefix(16).compactMap { $0.text?.cleaned(atMost: 200) },
            time: time)
    }

    // MARK: Signing in

    /// Returns a token, which every member knows until it restarts. Issuing one takes a member 50 ms, much longer if
    /// many want one, and it finishes for clients that have gone. So the client checks first that the member answers.
    func token(anew: Bool, _ time: Duration, isListening: Bool = false) async throws(EtcdFailure) -> String? {
        let (known, isOpen) = state.withLock { ($0.token, $0.isOpen) }
        guard case .password(let user, let password) = proof else { return known }
        if !anew, isOpen || known != nil { return known }
        if !isListening, let refusal = takeRefusal() { throw .refusal(refusal) }
        let question = Value.dictionary(["name": .string(Text(user)), "password": .string(Text(password))])
        let member = member
        if url.members.count > 1 { try await greet(member, within: time) }
        do throws(EtcdFailure) {
            let time = max(time, .seconds(2))
            let token = try await send("/v3/auth/authenticate", question, nil, to: member, time)["token"]?.text
            state.withLock { ($0.token, $0.isOpen, $0.isRefused) = (token, false, false) }
            return token
        } catch {
            guard case .refusal(let refusal) = error else { throw error }
            if refusal.isWrongPassword { note(refusal, isListening: isListening) }
            guard refusal.hasNoUsers else { throw error }
            state.withLock { ($0.token, $0.isOpen, $0.isRefused) = (nil, true, false) }
            return nil
        }
    }

    private func note(_ refusal: EtcdRefusal, isListening: Bool) {
        state.withLock { ($0.isRefused, $0.refusal) = (true, isListening ? refusal : nil) }
    }

    private func takeRefusal() -> EtcdRefusal? {
        state.withLock { state in
            defer { state.refusal = nil }
            return state.refusal
        }
    }

    /// Whether the password was refused. Calls try it again when the schedule says so; a watch leaves it to them.
    var isRefused: Bool { state.withLock(\.isRefused) }

    /// Checks that a member answers, with success or not.
    private func greet(_ member: HTTPAddress, within time: Duration) async throws(EtcdFailure) {
        do throws(EtcdFailure) { _ = try await status(of: member, within: time) } catch  where error.canTryNextMember {
            throw error
        } catch {}
    }

    /// Whether the cluster has no authentication, although a user was given.
    var isOpen: Bool { state.withLock(\.isOpen) }

    func forgetToken() {
        if case .password = proof { state.withLock { ($0.token, $0.isOpen) = (nil, false) } }
    }
}
