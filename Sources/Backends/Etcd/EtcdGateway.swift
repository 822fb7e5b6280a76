// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
package import HTTPClient
package import PropertyList
internal import PropertyListFiles
internal import Replication
internal import Synchronization

/// The way to the members of a cluster: the JSON gateway that each of them has, or a simulation's.
package protocol EtcdGateway: Sendable {
    /// Asks a member for something.
    /// - Parameter time: for how long it may say nothing; an answer that comes slowly is no silence.
    /// - Returns: the answer, and when the member thinks that it is, in seconds since 1970.
    func ask(
        _ question: EtcdQuestion, of member: HTTPAddress, within time: Duration
    ) async throws(EtcdFailure) -> (answer: Value, time: Int?)

    /// Asks a member for something that goes on, until that ends.
    /// - Parameter take: takes a piece, or `nil` for one that is too large; says whether it wants more.
    /// - Returns: whether the member knew the token.
    func listen(
        _ question: EtcdQuestion, to member: HTTPAddress, _ take: @escaping @Sendable (Value?) -> Bool
    ) async -> Bool

    /// Waits, no longer than until it is closed.
    func pause(for time: Duration) async

    /// Another way to the same members, to be closed by itself.
    func another() -> any EtcdGateway

    /// Ends what is under way, which fails.
    func close()
}

/// What a member is asked.
package struct EtcdQuestion: Sendable {
    package let path: String
    package let body: Value
    package let token: String?

    init(_ path: String, _ body: Value, token: String? = nil) {
        (self.path, self.body, self.token) = (path, body, token)
    }
}

/// The JSON gateway that every member has on its client port.
final class EtcdHTTP: EtcdGateway {
    private let options: HTTPOptions
    private let http: HTTPClient
    private let budget: RemoteBudget
    private let listening = Mutex(Listening())

    /// What goes on until somebody has heard enough.
    private struct Listening {
        var isClosed = false
        var http: HTTPClient?
    }

    /// - Parameter budget: for answers, until they are decoded.
    init(_ options: HTTPOptions, budget: RemoteBudget = .shared) {
        (self.options, self.budget, http) = (options, budget, HTTPClient(options))
    }

    func another() -> any EtcdGateway { EtcdHTTP(options, budget: budget) }
    func pause(for time: Duration) async { await http.pause(for: time) }

    func close() {
        http.close()
        let other = listening.withLock { listening in
            listening.isClosed = true
            return listening.http
        }
        other?.close()
    }

    func ask(
        _ question: EtcdQuestion, of member: HTTPAddress, within time: Duration
    ) async throws(EtcdFailure) -> (answer: Value, time: Int?) {
        var request = Self.request(question, member)
        request.patience = .silence(time)
        let share = budget.share()
        defer { withExtendedLifetime(share) {} }
        request.mayKeep = share.take
        let response: HTTPResponse
        do throws(HTTPFailure) { response = try await http.send(request) } catch { throw .http(error, member) }
        let values = Self.mostValues(in: response.body)
        guard response.status == 200, values <= Self.mostValues else {
            throw .refusal(EtcdRefusal(response, from: member.host))
        }
        guard share.take(response.body.count + values * Self.valueBytes) else {
            throw .http(.noRoom(member.host), member)
        }
        guard let answer = try? JSONReader.read(response.body), answer["header"] != nil else {
            throw .refusal(EtcdRefusal(response, from: member.host))
        }
        return (answer, response.date)
    }

    func listen(
        _ question: EtcdQuestion, to member: HTTPAddress, _ take: @escaping @Sendable (Value?) -> Bool
    ) async -> Bool {
        // Of its own, so that it can be ended between two pieces.
        let http = HTTPClient(options)
        let isClosed = listening.withLock { listening in
            listening.http = http
            return listening.isClosed
        }
        if isClosed { return true }
        let reader = EtcdLines(take, whenOver: http.close)
        var request = Self.request(question, member)
        request.patience = .endless
        // A member that others can't reach says nothing for as long as that lasts, unless it is told to give up.
        request.headers.append((name: "Grpc-Metadata-hasleader", value: "true"))
        request.sink = reader.sink
        let result = await http.result(of: request)
        await reader.finish()
        if case .success(let response) = result { return response.status != 401 }
        return true
    }

    private static func request(_ question: EtcdQuestion, _ member: HTTPAddress) -> HTTPRequest {
        var member = member
        member.path = question.path
        var headers = [(name: "Content-Type", value: "application/json")]
        if let token = question.token { headers.append((name: "Authorization", value: token)) }
        return HTTPRequest(
            "POST", member, headers: headers, body: Array(JSONWriter.write(question.body).utf8), limit: mostBytes)
    }

    /// Six times what a row has at most, which is more in Base64.
    private static let mostBytes = 8 << 20

    /// No question has more values for an answer.
    private static let mostValues = 1 << 19
    /// What a value takes decoded, beside its text. Only two bytes may have come of it.
    private static let valueBytes = 40

    /// How many values an answer has at most. Base64 has none of these characters.
    private static func mostValues(in body: [UInt8]) -> Int {
        body.count { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: "{") }
    }
}

/// Why there is no answer.
package enum EtcdFailure: Error {
    case http(HTTPFailure, HTTPAddress)
    case refusal(EtcdRefusal)

    /// Another member may know more.
    var isCycling: Bool {
        switch self {
        case .http(.closed, _), .http(.libraryMissing, _), .http(.unsendable, _), .http(.authority, _),
            .http(.tooLarge, _), .http(.noRoom, _):
            false
        case .http: true
        case .refusal(let refusal): refusal.isCycling || refusal.isNotOfEtcd
        }
    }

    /// What was asked for is more than is passed on, or taken, at once.
    var isTooLarge: Bool {
        switch self {
        case .http(let failure, _): if case .tooLarge = failure { true } else { false }
        case .refusal(let refusal): refusal.isTooLarge
        }
    }

    /// It took no time, so that there is none to be hoped for from waiting longer.
    var isImmediate: Bool {
        switch self {
        case .http(.timedOut, _), .http(.cut, _): false
        case .refusal(let refusal): !refusal.isCycling
        case .http: true
        }
    }

    func remoteError(_ client: EtcdClient) -> RemoteError {
        switch self {
        case .http(let failure, let member): RemoteError(etcd: failure, from: member)
        case .refusal(let refusal):
            RemoteError(refusal, at: client.url.place, hasCredentials: client.proof != .nothing)
        }
    }
}
