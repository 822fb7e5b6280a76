// SPDX-License-Identifier: Apache-2.0

internal import HTTPClient
internal import PropertyList
internal import PropertyListFiles
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
        var http: HTTPClient?
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
        var line: [UInt8] = []
    }

    private static let mostOwn = 64
    private static let mostLine = 1 << 20

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
        let former = state.withLock { state -> HTTPClient? in
            guard let asked = state.member, asked != member || !state.isLive else { return nil }
            state.failures = 0
            return state.http
        }
        former?.close()
    }

    func close() {
        let former = state.withLock { state -> HTTPClient? in
            state.isClosed = true
            return state.http
        }
        former?.close()
    }

    // MARK: Listening

    private func next() async -> Void? {
        while true {
            let http = HTTPClient(client.options)
            let isClosed = state.withLock { state in
                (state.http, state.member, state.line, state.hint) = (http, client.member, [], false)
                return state.isClosed
            }
            if isClosed { return nil }
            await listen(with: http)
            let (hint, failures, member) = state.withLock { state in
                if !state.hint { state.failures += 1 }
                defer { state.isLive = false }
                return (state.hint, state.failures, state.isLive ? nil : state.member)
            }
            if hint { return () }
            if let member { client.moveOn(from: member) }
            // What is wrong, the passes find out and say.
            await http.pause(for: .milliseconds(50 << min(failures, 14)))
        }
    }

    private func listen(with http: HTTPClient) async {
        let token: String?
        do throws(EtcdFailure) { token = try await client.token(anew: false, .seconds(2)) } catch { return }
        guard let member = state.withLock(\.member) else { return }
        let revision = state.withLock(\.revision)
        var question: [Text: Value] = ["key": .base64(key)]
        if revision > 0 { question["start_revision"] = .integer(revision + 1) }
        let body = Value.dictionary(["create_request": .dictionary(question)])
        var request = client.request("/v3/watch", Array(JSONWriter.write(body).utf8), at: member, token)
        request.patience = .endless
        request.sink = HTTPRequest.Sink(status: 200) { [weak self] in self?.take($0) ?? false }
        if case .success(let response) = await http.result(of: request), response.status == 401 {
            client.forgetToken()
        }
    }

    /// Takes a piece of the answer, which is a line of JSON for each thing that is told.
    /// - Returns: whether there is more to wait for.
    private func take(_ piece: UnsafeRawBufferPointer) -> Bool {
        let lines = state.withLock { state -> [[UInt8]]? in
            state.line += piece
            guard state.line.count <= Self.mostLine else { return nil }
            var lines = state.line.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            state.line = Array(lines.removeLast())
            return lines.map(Array.init)
        }
        return lines?.allSatisfy(take(line:)) ?? false
    }

    private func take(line: [UInt8]) -> Bool {
        guard let result = (try? JSONReader.read(line))?["result"] else { return false }
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
