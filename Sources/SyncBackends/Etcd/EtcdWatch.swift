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
    private let state = Mutex(State())

    private struct State {
        var gateway: (any EtcdGateway)?
        /// The member that is asked.
        var member: HTTPAddress?
        /// Everything up to here was heard of.
        var revision: Int64 = 0
        var isLive = false
        var isClosed = false
        var failures = 0
        /// The transactions of this process, of which it needs not be told.
        var own: [UInt64] = []
        var hint = false
    }

    private static let mostOwn = 64

    init(_ client: EtcdClient, key: [UInt8]) { (self.client, self.key) = (client, key) }

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

    /// Listens to a member that answers, if it is another one than that which is listened to.
    func follow(_ member: HTTPAddress) {
        let former = state.withLock { state -> (any EtcdGateway)? in
            guard let asked = state.member, asked != member || !state.isLive else { return nil }
            state.failures = 0
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
        while true {
            let gateway = client.gateway.another()
            let isClosed = state.withLock { state in
                (state.gateway, state.member, state.hint) = (gateway, client.member, false)
                return state.isClosed
            }
            if isClosed { return nil }
            await listen(by: gateway)
            let (hint, failures, member) = state.withLock { state in
                if !state.hint { state.failures += 1 }
                defer { state.isLive = false }
                return (state.hint, state.failures, state.isLive ? nil : state.member)
            }
            if hint { return () }
            if let member { client.moveOn(from: member) }
            // What is wrong, the passes find out and say.
            await gateway.pause(for: .milliseconds(50 << min(failures, 14)))
        }
    }

    private func listen(by gateway: any EtcdGateway) async {
        let token: String?
        do throws(EtcdFailure) { token = try await client.token(anew: false, .seconds(2)) } catch { return }
        guard let member = state.withLock(\.member) else { return }
        let revision = state.withLock(\.revision)
        var question: [Text: Value] = ["key": .base64(key)]
        if revision > 0 { question["start_revision"] = .integer(revision + 1) }
        let body = Value.dictionary(["create_request": .dictionary(question)])
        let isKnown = await gateway.listen(EtcdQuestion("/v3/watch", body, token: token), to: member) { [weak self] in
            self?.take($0) ?? false
        }
        if !isKnown { client.forgetToken() }
    }

    /// Takes one thing that is told.
    /// - Returns: whether there is more to wait for.
    private func take(_ result: Value) -> Bool {
        let compacted = result["compact_revision"]?.int64 ?? 0
        if result["canceled"]?.isTrue == true, compacted == 0 {
            client.forgetToken()
            return false
        }
        return state.withLock { state in
            (state.isLive, state.failures) = (true, 0)
            // It was restored from a copy, and would say nothing before it has come to where it was.
            let isBehind = result["created"]?.isTrue == true && result.revision < state.revision
            state.revision = isBehind ? result.revision : max(state.revision, result.revision, compacted)
            let events = result["events"]?.elements ?? []
            // What was forgotten there may have been anything.
            state.hint = compacted > 0 || isBehind || events.contains { !isOwn($0, state.own) }
            return !state.hint
        }
    }

    private func isOwn(_ event: Value, _ own: [UInt64]) -> Bool {
        guard let row = event["kv"]?.row, let account = try? EtcdAccount(decoding: row.value) else { return false }
        return account.tokens.first.map(own.contains) ?? false
    }
}
