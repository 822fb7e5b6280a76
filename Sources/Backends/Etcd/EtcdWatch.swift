// SPDX-License-Identifier: Apache-2.0

internal import HTTPClient
internal import PropertyList
internal import Synchronization

/// Waits for changes of a row that others make, and says when there was one.
///
/// A request stays open until something has changed. The next one begins at the revision after that, so that nothing is
/// missed in between, and neither while a member is away. It is a hint and no more: what has changed is looked at.
final class EtcdWatch: Sendable {
    private let client: EtcdClient
    private let key: [UInt8]
    /// The transaction that has written the row.
    private let token: @Sendable (EtcdRow) -> UInt64?
    private let state = Mutex(State())

    fileprivate struct State {
        var gateway: (any EtcdGateway)?
        /// The member that is asked.
        var member: HTTPAddress?
        /// Everything up to here was heard of, or somebody has looked since; 0: neither has been.
        var revision: Int64 = 0
        /// What is told of is what comes after this; 0: after the moment at which the member begins.
        var start: Int64 = 0
        /// The cluster's revision at that moment.
        var present: Int64 = 0
        var isLive = false
        var isClosed = false
        var failures = 0
        /// That nobody can be listened to was a reason to look.
        var hasToldOfOutage = false
        /// The transactions of this process, of which it needs not be told.
        var own: [UInt64] = []
        var hint = false
    }

    private static let mostOwn = 64
    /// How often in a row nobody could be listened to before that is a reason to look.
    fileprivate static let manyFailures = 4
    /// How long nobody is listened to after a hint: a member may have something to tell each time.
    private static let rest = Duration.milliseconds(100)

    init(_ client: EtcdClient, key: [UInt8], token: @escaping @Sendable (EtcdRow) -> UInt64?) {
        (self.client, self.key, self.token) = (client, key, token)
    }

    /// Changes are heard of as soon as they are made.
    var isLive: Bool { state.withLock(\.isLive) }

    /// Whoever listens does the waiting.
    func hints() -> AsyncStream<Void> { AsyncStream { await self.next() } }

    /// Says nothing when this transaction is heard of.
    func ignore(_ token: UInt64) {
        state.withLock { state in
            state.own.append(token)
            state.own.removeFirst(max(0, state.own.count - Self.mostOwn))
        }
    }

    /// Somebody has looked. Listens to what comes after that, and to the member that has answered.
    func follow(_ member: HTTPAddress, after revision: Int64) {
        let former = state.withLock { state -> (any EtcdGateway)? in
            state.revision = revision
            if state.member == member, state.isLive, state.start <= revision { return nil }
            state.failures = 0
            defer { state.gateway = nil }
            return state.gateway
        }
        former?.close()
    }

    func close() {
        let former = state.withLock { state -> (any EtcdGateway)? in
            state.isClosed = true
            return state.gateway
        }
        former?.close()
    }

    // MARK: Listening

    private func next() async -> Void? {
        // What is changed meanwhile is told of then.
        if state.withLock(\.hint) { await client.pause(for: Self.rest) }
        while true {
            let gateway = client.gateway.another()
            let isClosed = state.withLock { state in
                (state.gateway, state.member, state.hint, state.isLive) = (gateway, client.member, false, false)
                return state.isClosed
            }
            if isClosed { return nil }
            await listen(by: gateway)
            let (hint, failures, member) = state.withLock { state in
                let isOver = state.gateway == nil
                if !state.hint, !isOver { state.failures += 1 }
                defer { state.isLive = state.isLive && state.hint }
                return (
                    state.hint || state.tellsOfOutage(), state.failures, state.isLive || isOver ? nil : state.member
                )
            }
            if let member { client.moveOn(from: member) }
            if hint { return () }
            await gateway.pause(for: .milliseconds(50 << min(failures, 14)))
        }
    }

    private func listen(by gateway: any EtcdGateway) async {
        if client.isRefused { return }
        let token: String?
        do throws(EtcdFailure) {
            token = try await client.token(anew: false, .seconds(2), isListening: true)
        } catch { return }
        let (member, start) = state.withLock { state in
            (state.start, state.present) = (state.revision, 0)
            return (state.member, state.start)
        }
        guard let member else { return }
        var question: [Text: Value] = ["key": .base64(key)]
        if start > 0 { question["start_revision"] = .integer(start + 1) }
        let body = Value.dictionary(["create_request": .dictionary(question)])
        let isKnown = await gateway.listen(EtcdQuestion("/v3/watch", body, token: token), to: member) { [weak self] in
            self?.take($0) ?? false
        }
        if !isKnown { client.forgetToken() }
    }

    /// Takes one thing that is told; `nil`: one that is too large to be read.
    /// - Returns: whether there is more to wait for.
    private func take(_ result: Value?) -> Bool {
        // A notice that makes no sense is taken for a change of which nothing is known; the sync cycle that follows finds
        // out what is wrong, and says it.
        let notice = result.flatMap { try? EtcdNotice($0) }
        if let notice, notice.isOver, notice.compacted == 0 {
            client.forgetToken()
            return false
        }
        return state.withLock { $0.take(notice, token) }
    }
}

extension EtcdWatch.State {
    /// Whether to say that nobody can be listened to: once in an outage. What is wrong, the passes find out and tell, and
    /// the one that comes through has it be tried again at once.
    fileprivate mutating func tellsOfOutage() -> Bool {
        guard failures >= EtcdWatch.manyFailures, !hasToldOfOutage else { return false }
        hasToldOfOutage = true
        return true
    }

    fileprivate mutating func take(_ notice: EtcdNotice?, _ token: (EtcdRow) -> UInt64?) -> Bool {
        (isLive, failures, hasToldOfOutage) = (true, 0, false)
        if let notice, notice.isBeginning { return begin(at: notice.revision) }
        let compacted = notice?.compacted ?? 0
        // What was forgotten there, or is too much to be read, may have been anything.
        hint = notice.map { notice in compacted > 0 || notice.rows.contains { !isOwn($0, token) } } ?? true
        revision = max(revision, notice?.revision ?? 0, compacted, hint ? present : 0)
        return !hint
    }

    /// The member listens from now on. What happened before that is told of next, if it was asked for.
    private mutating func begin(at present: Int64) -> Bool {
        self.present = present
        // It was restored from a copy, and would say nothing before it has come to where it was.
        hint = present < start
        if start == 0 { start = present }
        if hint || revision == 0 { revision = present }
        return !hint && start <= revision
    }

    private func isOwn(_ row: EtcdRow?, _ token: (EtcdRow) -> UInt64?) -> Bool {
        row.flatMap(token).map(own.contains) ?? false
    }
}
