// SPDX-License-Identifier: Apache-2.0

internal import GRDBSQLite
internal import Glibc
internal import Replication
internal import Synchronization

/// The work on a database that waits for the disk, on another thread.
///
/// A checkpoint moves the write-ahead log into the database file through a connection of its own; in passive
/// mode it waits for nobody, and nobody for it. Where writes never pause, that alone would let the log grow without
/// end: see ``longestLog``. A synchronisation needs no connection at all: the log holds
/// every commit since the last checkpoint, SQLite syncs it before a checkpoint and the database after one, so
/// syncing the log makes all that was committed safe. See docs/decisions.
final class Maintenance: Sendable {
    private let path: String
    private let thread = WorkThread(.disk)
    private let disk: Disk
    private let state = Mutex(State())

    private struct State {
        var bytesSinceCheckpoint = 0
        var waiting: [CheckedContinuation<Result<Void, EngineError>, Never>] = []
    }

    /// A log this long is checkpointed; SQLite starts it anew afterwards.
    private static let checkpointSize = 4 << 20
    private static let pageSize = 2048
    /// Pages, 16 MiB, after which writes have to wait for a checkpoint. SQLite begins the log anew only when
    /// everything in it is in the database, and writes that never pause always add something meanwhile.
    private static let longestLog = (16 << 20) / pageSize

    init(databasePath: String, disk: Disk) {
        path = databasePath
        self.disk = disk
    }

    private func run(_ work: @escaping @Sendable () -> Void) {
        if let run = disk.run { run(work) } else { thread.run(work) }
    }

    /// Counts a commit of so many bytes, and starts a checkpoint when it is enough.
    func noteCommit(bytes: Int) {
        let isDue = state.withLock { state in
            // The log holds whole pages: a commit is one at least.
            state.bytesSinceCheckpoint += bytes + Self.pageSize
            guard state.bytesSinceCheckpoint >= Self.checkpointSize else { return false }
            state.bytesSinceCheckpoint = 0
            return true
        }
        if isDue { run { self.checkpoint() } }
    }

    private func checkpoint() {
        // A checkpoint that fails is tried again with the next one; the log only gets longer until then.
        // A database that was set aside meanwhile must not be made anew here.
        guard access(path, F_OK) == 0 else { return }
        guard let connection = try? BriefConnection(path, flags: SQLITE_OPEN_READWRITE) else { return }
        // What is left for the second one to do is little.
        if connection.checkpoint(SQLITE_CHECKPOINT_PASSIVE) > Self.longestLog {
            _ = connection.checkpoint(SQLITE_CHECKPOINT_RESTART)
        }
    }

    /// Returns when what was committed before the call is on the disk.
    func synchronize() async throws(EngineError) {
        try await withCheckedContinuation { continuation in
            let isFirst = state.withLock { state in
                state.waiting.append(continuation)
                return state.waiting.count == 1
            }
            if isFirst { run { self.synchronizeWaiting() } }
        }.get()
    }

    private func synchronizeWaiting() {
        // Whoever comes from here on waits for the next round: its commit may be later than this one's sync.
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        let result = syncLog()
        for continuation in waiting { continuation.resume(returning: result) }
    }

    private func syncLog() -> Result<Void, EngineError> {
        let directory = String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)])
        for file in [path + "-wal", directory] {
            let descriptor = open(file, O_RDONLY | O_CLOEXEC)
            // Nothing was written since SQLite began a new log.
            if descriptor < 0 && errno == ENOENT { continue }
            guard descriptor >= 0 else { return .failure(failure("opening", file)) }
            defer { close(descriptor) }
            guard disk.synchronize(descriptor, file) == 0 else { return .failure(failure("syncing", file)) }
        }
        return .success(())
    }

    private func failure(_ verb: String, _ file: String) -> EngineError {
        errno == ENOSPC || errno == EDQUOT
            ? .diskFull : .storage("\(verb) \(file): \(String(cString: strerror(errno)))")
    }
}
