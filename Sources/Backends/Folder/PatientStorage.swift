// SPDX-License-Identifier: Apache-2.0

internal import Blobs
internal import EventLoop
internal import Replication
internal import Synchronization

/// A folder's storage that fails if the file system doesn't answer: the mount of a server that is away, or a drive that
/// is failing.
///
/// The thread that waits there can't be ended. As long as one does, nothing else begins on the same mount.
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
final class FolderWork: Sendable {
    static let shared = FolderWork(on: .folders)

    /// The threads that do the work.
    private let pool: WorkPool
    /// How long a piece of work may take, and the time between two looks for longer ones, in microseconds.
    private let (limit, pause): (UInt64, UInt64)
    private let state = Mutex(State())

    private struct State {
        var pieces: [UInt64: Piece] = [:]
        var last: UInt64 = 0
        var isWatched = false
    }

    private struct Piece {
        let start: UInt64
        /// Fails the work, unless it only waits for its turn. Returns whether it does.
        let fail: @Sendable () -> Bool
    }

    init(on pool: WorkPool, limit: UInt64 = 60_000_000, pause: UInt64 = 20_000_000) {
        (self.pool, self.limit, self.pause) = (pool, limit, pause)
    }

    /// Does a piece of an owner's work on a mount, and returns its result.
    /// - Throws: `RemoteError.unavailable` once a thread has waited too long there, or all that the work could have.
    func result<Value: Sendable>(
        at mount: String, of owner: UInt32, _ work: @escaping @Sendable () async throws(RemoteError) -> Value
    ) async throws(RemoteError) -> Value {
        if pool.obstacle(at: mount, of: owner) == .place { throw Self.noAnswer(at: mount) }
        let result: Result<Value, RemoteError> = await withCheckedContinuation { continuation in
            let answer = FirstAnswer(continuation)
            let number = begin { [pool] in
                // What only waits for its turn says nothing about its mount.
                guard let obstacle = pool.obstacle(at: mount, of: owner) else { return false }
                answer.give(.failure(obstacle == .place ? Self.noAnswer(at: mount) : Self.noThread))
                return true
            }
            EventLoop.task { [self] in
                do throws(RemoteError) {
                    answer.give(.success(try await work()))
                } catch {
                    answer.give(.failure(error))
                }
                end(number)
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

    private func begin(orFail fail: @escaping @Sendable () -> Bool) -> UInt64 {
        let (number, isUnwatched) = state.withLock { state in
            state.last += 1
            state.pieces[state.last] = Piece(start: EventLoop.now, fail: fail)
            defer { state.isWatched = true }
            return (state.last, !state.isWatched)
        }
        if isUnwatched {
            EventLoop.task { [self] in
                repeat { await EventLoop.pause(.microseconds(Int64(pause))) } while failOverdue()
            }
        }
        return number
    }

    private func end(_ number: UInt64) { state.withLock { $0.pieces[number] = nil } }

    /// Fails what takes too long.
    /// - Returns: whether something else is under way.
    private func failOverdue() -> Bool {
        let now = EventLoop.now
        let overdue = state.withLock { $0.pieces.filter { now - min(now, $0.value.start) > limit } }
        let failed = overdue.filter { $0.value.fail() }
        pool.reconsider()
        return state.withLock { state in
            for number in failed.keys { state.pieces[number] = nil }
            state.isWatched = !state.pieces.isEmpty
            return state.isWatched
        }
    }
}

/// A continuation that gets the first of several results.
private final class FirstAnswer<Value: Sendable>: Sendable {
    private let continuation: Mutex<CheckedContinuation<Value, Never>?>

    init(_ continuation: CheckedContinuation<Value, Never>) { self.continuation = Mutex(continuation) }

    func give(_ value: Value) {
        let first = continuation.withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
        first?.resume(returning: value)
    }
}
