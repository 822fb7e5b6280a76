// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import Synchronization

/// A pull: what its first transaction found, and what is read afterwards.
actor EtcdPull: RemotePull {
    nonisolated let account: RemoteAccount
    nonisolated let devices: [Origin: RemoteDevice]
    nonisolated let stores: [String]
    nonisolated let ownPublication: OwnPublication
    nonisolated var problems: [String] { flaws.withLock(\.self) }

    private let backend: EtcdBackend
    /// The backend's executor.
    nonisolated var unownedExecutor: UnownedSerialExecutor { backend.unownedExecutor }
    private let origin: Origin
    private let base: EtcdCursor?
    private let look: EtcdPoll
    private nonisolated let flaws = Mutex<[String]>([])
    /// The stores that could be read completely.
    private var readStores: Set<String> = []
    /// The outlines of those stores, whole or of deltas. They lack the values, which the engine holds by now.
    private var (wholes, deltas) = (EtcdOutlines(), EtcdOutlines())

    init(
        _ backend: EtcdBackend, _ origin: Origin, _ base: EtcdCursor?, _ look: EtcdPoll,
        ownPublication: OwnPublication, devices: [Origin: RemoteDevice]
    ) {
        (self.backend, self.origin, self.base, self.look) = (backend, origin, base, look)
        (self.ownPublication, self.devices) = (ownPublication, devices)
        account = look.position.account.remote
        stores = look.changed.union(base?.missing ?? []).sorted()
    }

    func change(of store: String) async throws(RemoteError) -> RemoteChange {
        let isWhole = base.map { $0.missing.contains(store) } ?? true || look.gone.contains(store)
        let reading = try await backend.read(
            store, since: isWhole ? 0 : base?.revision ?? 0, after: look.position)
        if let problem = reading.problem {
            flaws.withLock { $0.append(problem) }
        } else {
            readStores.insert(store)
            let outline = EtcdOutline(of: reading.state)
            if reading.isDelta { deltas[store] = outline } else { wholes[store] = outline }
        }
        return RemoteChange(state: reading.state, isComplete: reading.problem == nil, isDelta: reading.isDelta)
    }

    func finish(joined stores: Set<String>) async -> PullResult {
        let isRead = readStores.isSuperset(of: self.stores)
        let joined = readStores.intersection(stores)
        let missing = Set(self.stores).subtracting(joined)
        let cursor = await backend.keep(look, origin, joined, wholes, deltas, missing: missing)
        readStores = []
        (wholes, deltas) = (EtcdOutlines(), EtcdOutlines())
        return PullResult(cursor: cursor, isComplete: isRead)
    }
}
