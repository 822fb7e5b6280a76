// SPDX-License-Identifier: Apache-2.0

internal import Replication

/// An upload under way. Nothing is written before ``finish()``.
actor EtcdPush: RemotePush {
    nonisolated let stores: [String]
    private let backend: EtcdBackend
    /// The backend's executor.
    nonisolated var unownedExecutor: UnownedSerialExecutor { backend.unownedExecutor }
    private let publication: Publication
    private var snapshots: [StoreSnapshot] = []

    init(_ backend: EtcdBackend, _ publication: Publication, stores: [String]) {
        (self.backend, self.publication, self.stores) = (backend, publication, stores)
    }

    func upload(_ snapshot: StoreSnapshot) async throws(RemoteError) {
        snapshots.append(snapshot)
    }

    func finish() async throws(RemoteError) {
        try await backend.publish(publication, snapshots)
    }
}
