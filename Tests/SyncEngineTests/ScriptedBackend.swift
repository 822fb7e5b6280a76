// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import SyncEngine
import Synchronization

/// A fake remote that follows a test's script, because a real one can't be made to stop halfway.
actor ScriptedBackend: RemoteBackend {
    nonisolated let traits: BackendTraits
    private(set) var script: Script
    private(set) var uploads: [String: StoreState] = [:]
    private(set) var garbageCollections: [GarbageCollection] = []
    private(set) var isClosed = false
    /// The publication counts that were passed to pulls.
    private(set) var counts: [UInt64] = []
    private var gate: CheckedContinuation<Void, Never>?
    private var isHeld = false
    private var arrivals: [CheckedContinuation<Void, Never>] = []

    struct Script: Sendable {
        var account = RemoteAccount(identifier: "A")
        var changes: [String: RemoteChange] = [:]
        /// What a pull without a cursor finds, if that is more than ``changes``.
        var all: [String: RemoteChange]?
        var isComplete = true
        var lackingOrigins: Set<Origin> = []
        var cursor: [UInt8] = [1]
        /// The problems that a pull reports from its beginning.
        var problems: [String] = []
        /// The problems that a pull reports once it has read a store, by store.
        var flaws: [String: String] = [:]
        var devices: [Origin: RemoteDevice] = [:]
        var ownPublication = OwnPublication.asPublished
        var failure: RemoteError?
        var pushFailure: RemoteError?
        /// Whether a push, when held, waits at its beginning rather than at its end.
        var holdsPush = false
        /// Whether a pull, when held, waits at its beginning.
        var holdsPull = false
    }

    init(_ script: Script = Script(), givesHints: Bool = true) {
        self.script = script
        traits = BackendTraits(coalescing: .seconds(1), firstWait: .seconds(1), givesHints: givesHints)
    }

    func change(_ body: @Sendable (inout Script) -> Void) { body(&script) }

    /// Makes pulls wait before they read a store, and pushes at their end, until ``letGo()``.
    func hold() { isHeld = true }

    func letGo() {
        isHeld = false
        gate?.resume()
        gate = nil
    }

    /// Returns once a pull or a push waits.
    func someoneWaits() async {
        if gate != nil { return }
        await withCheckedContinuation { arrivals.append($0) }
    }

    fileprivate func passGate() async {
        guard isHeld else { return }
        for arrival in arrivals { arrival.resume() }
        arrivals = []
        await withCheckedContinuation { gate = $0 }
    }

    fileprivate func received(_ snapshot: StoreSnapshot) { uploads[snapshot.identifier] = snapshot.state }

    // MARK: RemoteBackend

    func open(creatingAccount createsAccount: Bool) async throws(RemoteError) -> RemoteAccount { script.account }

    func restore(_ account: String) async throws(RemoteError) -> RemoteAccount {
        script.account = RemoteAccount(identifier: account)
        return script.account
    }

    func pull(
        after cursor: [UInt8]?, as origin: Origin, published count: UInt64
    ) async throws(RemoteError) -> any RemotePull {
        counts.append(count)
        if script.holdsPull { await passGate() }
        if let failure = script.failure { throw failure }
        var script = script
        if cursor == nil, let all = script.all { script.changes = all }
        return Pull(backend: self, script: script)
    }

    func push(_ publication: Publication) async throws(RemoteError) -> any RemotePush {
        if script.holdsPush { await passGate() }
        if let failure = script.pushFailure { throw failure }
        return Push(backend: self, stores: publication.stores.map(\.identifier))
    }

    func collectGarbage(_ request: GarbageCollection) async throws(RemoteError) { garbageCollections.append(request) }

    nonisolated func hints() -> AsyncStream<Void> { AsyncStream { $0.finish() } }

    func close() async { isClosed = true }

    private final class Pull: RemotePull {
        let backend: ScriptedBackend
        let script: Script
        private let found: Mutex<[String]>

        init(backend: ScriptedBackend, script: Script) {
            (self.backend, self.script) = (backend, script)
            found = Mutex(script.problems)
        }

        var account: RemoteAccount { script.account }
        var devices: [Origin: RemoteDevice] { script.devices }
        var stores: [String] { script.changes.keys.sorted() }
        var ownPublication: OwnPublication { script.ownPublication }
        var problems: [String] { found.withLock(\.self) }

        func change(of store: String) async throws(RemoteError) -> RemoteChange {
            await backend.passGate()
            if let flaw = script.flaws[store] { found.withLock { $0.append(flaw) } }
            return script.changes[store] ?? RemoteChange(state: StoreState(), isComplete: true)
        }

        func finish(joined stores: Set<String>) async -> PullResult {
            PullResult(
                cursor: script.cursor, isComplete: script.isComplete, lackingOrigins: script.lackingOrigins)
        }
    }

    private struct Push: RemotePush {
        let backend: ScriptedBackend
        let stores: [String]

        func upload(_ snapshot: StoreSnapshot) async throws(RemoteError) { await backend.received(snapshot) }
        func finish() async throws(RemoteError) { await backend.passGate() }
    }
}
