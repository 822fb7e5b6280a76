// SPDX-License-Identifier: Apache-2.0

internal import Blobs
internal import Replication
internal import StoreEngine
internal import SyncEngine

/// A remote of the simulation, as a storage of the blob backend.
final class SimulatedStorage: BlobStorage, @unchecked Sendable {
    // Safe because everything that touches it happens on one thread.
    private let place: Place<[UInt8]>
    private let client: Client
    let traits: BackendTraits
    /// Called with everything that leaves the device.
    var onWrite: (_ name: String, _ bytes: [UInt8]) -> Void = { _, _ in }

    init(_ place: Place<[UInt8]>, _ client: Client, givesHints: Bool) {
        self.place = place
        self.client = client
        traits = BackendTraits(
            coalescing: .seconds(1), givesHints: givesHints, replicatesSeparately: place.kind == .folder)
    }

    private func wait<T>(_ ask: (@escaping Place<[UInt8]>.Reply<T>) -> Void) async throws(RemoteError) -> T {
        let result: Result<T, RemoteError> = await withUnsafeContinuation { continuation in
            ask { result in
                nonisolated(unsafe) let result = result
                // Safe because both ends are on the same thread.
                continuation.resume(returning: result)
            }
        }
        return try result.get()
    }

    func check(creatingFolder createsFolder: Bool) async throws(RemoteError) -> [String] {
        try await wait { place.check(client, then: $0) }
        return []
    }

    func list(_ folder: String) async throws(RemoteError) -> [BlobListing] {
        try await wait { place.list(folder, client, then: $0) }.map {
            BlobListing(name: $0.name, version: folder == "h" ? $0.tag : nil)
        }
    }

    func get(_ name: String, limit: Int, unless version: String?) async throws(RemoteError) -> BlobContent {
        guard let found = try await wait({ place.getTagged(name, client, then: $0) }) else { return .absent }
        if let version, version == found.tag { return .unchanged }
        return found.blob.count > limit ? .unreadable("is too large") : .content(found.blob, version: found.tag)
    }

    func put(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        onWrite(name, bytes)
        try await wait { place.put(name, bytes, client, then: $0) }
    }

    func create(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        onWrite(name, bytes)
        try await wait { place.create(name, bytes, client, then: $0) }
    }

    func delete(_ name: String) async throws(RemoteError) {
        try await wait { place.delete(name, client, then: $0) }
    }

    func hints() -> AsyncStream<Void> { AsyncStream { $0.finish() } }

    func close() {}
}
