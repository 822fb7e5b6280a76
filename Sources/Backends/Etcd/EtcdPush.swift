// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication

/// An upload under way. Small publications are written in one transaction when it finishes. Before, it writes what it
/// holds whenever that is much.
actor EtcdPush: RemotePush {
    nonisolated let stores: [String]
    private let backend: EtcdBackend
    /// The backend's executor.
    nonisolated var unownedExecutor: UnownedSerialExecutor { backend.unownedExecutor }
    private let publication: Publication
    private var held: [StoreSnapshot] = []
    private var heldBytes = 0
    /// What an entry takes besides its key and value.
    private static let entryBytes = 150

    init(_ backend: EtcdBackend, _ publication: Publication, stores: [String]) {
        (self.backend, self.publication, self.stores) = (backend, publication, stores)
    }

    func upload(_ snapshot: StoreSnapshot) async throws(RemoteError) {
        // Encoded once: the snapshot would encode its values each time, and holds them decoded.
        let state = snapshot.state
        held.append(StoreSnapshot(identifier: snapshot.identifier, state: state, sequence: snapshot.sequence))
        heldBytes += state.entries.reduce(0) {
            $0 + Self.entryBytes + $1.key.string.utf8.count + ($1.value.value?.count ?? 0)
        }
        if heldBytes > backend.limits.heldBytes { try await write(isLast: false) }
    }

    func finish() async throws(RemoteError) { try await write(isLast: true) }

    private func write(isLast: Bool) async throws(RemoteError) {
        try await backend.publish(publication, held, isLast: isLast)
        (held, heldBytes) = ([], 0)
    }
}
