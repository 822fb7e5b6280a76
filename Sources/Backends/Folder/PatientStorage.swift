// SPDX-License-Identifier: Apache-2.0

internal import Blobs
internal import EventLoop
internal import Replication

/// A folder's storage that fails if the file system doesn't answer: the mount of a server that is away, or a drive that
/// is failing.
///
/// The thread that waits there can't be ended. As long as one does, ``WorkPool`` lets its owner begin nothing else on the
/// same mount, and nobody once several owners' threads do.
final class PatientStorage: BlobStorage {
    private let storage: FolderStorage
    private let work: FolderWork

    init(_ storage: FolderStorage, _ work: FolderWork = .shared) { (self.storage, self.work) = (storage, work) }

    private func result<Value: Sendable>(
        _ body: @escaping @Sendable (FolderStorage) async throws(RemoteError) -> Value
    ) async throws(RemoteError) -> Value {
        try await work.result(at: storage.mount, of: storage.owner) { [storage] () async throws(RemoteError) in
            try await body(storage)
        }
    }

    var traits: BackendTraits { storage.traits }

    func check(creatingFolder createsFolder: Bool) async throws(RemoteError) -> [String] {
        // A drive may have been mounted there, or removed.
        try await result { storage async throws(RemoteError) in await storage.findMount() }
        return try await result { storage async throws(RemoteError) in
            try await storage.check(creatingFolder: createsFolder)
        }
    }

    func list(_ folder: String) async throws(RemoteError) -> [BlobListing] {
        try await result { storage async throws(RemoteError) in try await storage.list(folder) }
    }

    func get(_ name: String, limit: Int, unless version: String?) async throws(RemoteError) -> BlobContent {
        try await result { storage async throws(RemoteError) in
            try await storage.get(name, limit: limit, unless: version)
        }
    }

    func put(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        try await result { storage async throws(RemoteError) in try await storage.put(name, bytes) }
    }

    func create(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        try await result { storage async throws(RemoteError) in try await storage.create(name, bytes) }
    }

    func delete(_ name: String) async throws(RemoteError) {
        try await result { storage async throws(RemoteError) in try await storage.delete(name) }
    }

    func hints() -> AsyncStream<Void> { storage.hints() }

    func close() { storage.close() }
}

/// The work on folders that is under way.
@BusActor
final class FolderWork {
    nonisolated static let shared = FolderWork(on: .folders)

    /// The threads that do the work.
    private let pool: WorkPool
    /// How long a piece of work may take, and the time between two looks for longer ones, in microseconds.
    private let (limit, pause): (UInt64, UInt64)
    private var pieces: [UInt64: Piece] = [:]
    private var last: UInt64 = 0
    private var isWatched = false

    private struct Piece {
        let start: UInt64
        /// Fails the work, unless it only waits for its turn. Returns whether it does.
        let fail: @BusActor () -> Bool
    }

    nonisolated init(on pool: WorkPool, limit: UInt64 = 60_000_000, pause: UInt64 = 20_000_000) {
        (self.pool, self.limit, self.pause) = (pool, limit, pause)
    }

    /// Does a piece of an owner's work on a mount, and returns its result.
    /// - Throws: `RemoteError.unavailable` once a thread has waited too long there, or all that the work could have.
    func result<Value: Sendable>(
        at mount: String, of owner: UInt32, _ work: @escaping @Sendable () async throws(RemoteError) -> Value
    ) async throws(RemoteError) -> Value {
        if pool.obstacle(at: mount, of: owner) == .place { throw Self.noAnswer(at: mount) }
        let result: Result<Value, RemoteError> = await withCheckedContinuation { continuation in
            let race = Race(continuation)
            let number = begin { [pool] in
                // What only waits for its turn says nothing about its mount.
                guard let obstacle = pool.obstacle(at: mount, of: owner) else { return false }
                race.end(.success(.failure(obstacle == .place ? Self.noAnswer(at: mount) : Self.noThread)))
                return true
            }
            EventLoop.task { [self] in
                do throws(RemoteError) {
                    race.end(.success(.success(try await work())))
                } catch {
                    race.end(.success(.failure(error)))
                }
                pieces[number] = nil
            }
        }
        return try result.get()
    }

    private static func noAnswer(at mount: String) -> RemoteError {
        RemoteError(
            .unavailable,
            "The file system at \(mount) has not answered for a minute. Is its server away, or its drive failing?")
    }

    private static var noThread: RemoteError {
        RemoteError(.unavailable, "This folder waits for others that have not answered for a minute.")
    }

    private func begin(orFail fail: @escaping @BusActor () -> Bool) -> UInt64 {
        last += 1
        pieces[last] = Piece(start: EventLoop.now, fail: fail)
        if !isWatched {
            isWatched = true
            EventLoop.task { [self] in
                repeat { await EventLoop.pause(.microseconds(Int64(pause))) } while failOverdue()
                isWatched = false
            }
        }
        return last
    }

    /// Fails what takes too long.
    /// - Returns: whether something else is under way.
    private func failOverdue() -> Bool {
        let now = EventLoop.now
        for (number, piece) in pieces where now - min(now, piece.start) > limit && piece.fail() { pieces[number] = nil }
        pool.reconsider()
        return !pieces.isEmpty
    }
}
