// SPDX-License-Identifier: Apache-2.0

internal import HTTPClient
internal import PropertyList
internal import Synchronization

/// Waits for other devices' changes of a row, and reports them as hints.
///
/// A request stays open until something has changed. The next one begins at the revision after that, so that no change
/// is missed in between, or while a member is down. A hint only causes a poll.
final class EtcdWatch: Sendable {
    private let client: EtcdClient
    private let key: [UInt8]
    /// Returns the number of the transaction that has written a row.
    private let token: @Sendable (EtcdRow) -> UInt64?
    private let state = Mutex(State())

    fileprivate struct State {
        var gateway: (any EtcdGateway)?
        /// The member that is asked.
        var member: HTTPAddress?
        /// The revision up to which changes were reported or polled; 0 if none were.
        var revision: Int64 = 0
        /// The revision after which the watch reports changes; 0 for the one at which the member begins.
        var start: Int64 = 0
        /// The cluster's revision when the member began the watch.
        var present: Int64 = 0
        /// How many messages without a change the member has sent since the watch began.
        var empty = 0
        var isLive = false
        var isClosed = false
        var failures = 0
        /// When the member began the watch; `nil` if it hasn't.
        var began: ContinuousClock.Instant?
        /// Whether the member began the last watch that has ended, and ended it at once.
        var endsAtOnce = false
        /// Whether this outage has caused a hint.
        var hasToldOfOutage = false
        /// The last transactions of this process, which cause no hint.
        var own: [UInt64] = []
        var hint = false
    }

    private static let mostOwn = 64
    /// The number of failures in a row that make an outage, which causes a hint.
    fileprivate static let manyFailures = 4
    /// A watch that lasts this long has not failed, even if it reports nothing.
    fileprivate static let shortLife = Duration.seconds(5)
    /// A member that sends more messages without a change isn't etcd, or keeps others busy on purpose.
    fileprivate static let mostEmpty = 1000
    /// The pause after a hint, since a member may report something every time.
    private static let rest = Duration.milliseconds(100)

    init(_ client: EtcdClient, key: [UInt8], token: @escaping @Sendable (EtcdRow) -> UInt64?) {
        (self.client, self.key, self.token) = (client, key, token)
    }

    /// Whether the watch is open, so that changes are reported as soon as they are made.
    var isLive: Bool { state.withLock(\.isLive) }

    /// Returns a stream that watches while its consumer waits.
    func hints() -> AsyncStream<Void> { AsyncStream { await self.next() } }

    /// Keeps this transaction from causing a hint.
    func ignore(_ token: UInt64) {
        state.withLock { state in
            state.own.append(token)
            state.own.removeFirst(max(0, state.own.count - Self.mostOwn))
        }
    }

    /// Notes a poll up to a revision. The watch continues after it, with the member that answered.
    func follow(_ member: HTTPAddress, after revision: Int64) {
        let former = state.withLock { state -> (any EtcdGateway)? in
            state.revision = revision
            // A member that ends each watch at once answers polls all the same.
            if state.member == member, state.isLive ? state.start <= revision : state.endsAtOnce { return nil }
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
        // Changes during the pause are reported afterwards.
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
                if !state.hint, !isOver { state.noteEnd() }
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
            (state.start, state.present, state.began, state.empty) = (state.revision, 0, nil, 0)
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

    /// Takes a message; `nil` if it is too large to be decoded.
    /// - Returns: whether to wait for more.
    private func take(_ result: Value?) -> Bool {
        // A message that can't be decoded counts as an unknown change. The sync cycle that follows finds out what is
        // wrong and reports it.
        let notice = result.flatMap { try? EtcdNotice($0) }
        if let notice, notice.isOver, notice.compacted == 0 {
            client.forgetToken()
            return false
        }
        return state.withLock { $0.take(notice, token) }
    }
}

extension EtcdWatch.State {
    /// Returns whether to hint at an outage, which happens once per outage. The cycles that follow find out what is
    /// wrong and report it; the first that succeeds makes the watch try again at once.
    fileprivate mutating func tellsOfOutage() -> Bool {
        guard failures >= EtcdWatch.manyFailures, !hasToldOfOutage else { return false }
        hasToldOfOutage = true
        return true
    }

    /// Notes that a watch has ended without a hint, or could not begin.
    fileprivate mutating func noteEnd() {
        let life = began.map { ContinuousClock.now - $0 }
        endsAtOnce = life.map { $0 < EtcdWatch.shortLife } ?? false
        if life != nil, !endsAtOnce { (failures, hasToldOfOutage) = (0, false) }
        failures += 1
    }

    fileprivate mutating func take(_ notice: EtcdNotice?, _ token: (EtcdRow) -> UInt64?) -> Bool {
        isLive = true
        if let notice, notice.isBeginning {
            began = .now
            if !endsAtOnce { hasToldOfOutage = false }
            return begin(at: notice.revision)
        }
        let compacted = notice?.compacted ?? 0
        if let notice, notice.rows.isEmpty, compacted == 0 {
            empty += 1
            return empty <= EtcdWatch.mostEmpty
        }
        (failures, hasToldOfOutage, endsAtOnce) = (0, false, false)
        // Events that were compacted, or are too large to be decoded, may be any change.
        hint = notice.map { notice in compacted > 0 || notice.rows.contains { !isOwn($0, token) } } ?? true
        revision = max(revision, notice?.revision ?? 0, compacted, hint ? present : 0)
        return !hint
    }

    /// Takes the beginning of a watch. Changes before it are reported next, if they were requested.
    private mutating func begin(at present: Int64) -> Bool {
        self.present = present
        // The cluster was restored from a backup, and would report nothing until it reaches the requested revision.
        hint = present < start
        if start == 0 { start = present }
        if hint || revision == 0 { revision = present }
        return !hint && start <= revision
    }

    private func isOwn(_ row: EtcdRow?, _ token: (EtcdRow) -> UInt64?) -> Bool {
        row.flatMap(token).map(own.contains) ?? false
    }
}
