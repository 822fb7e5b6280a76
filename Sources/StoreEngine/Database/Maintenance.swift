// SPDX-License-Identifier: Apache-2.0

internal import GRDBSQLite
internal import Glibc
internal import Replication
internal import Synchronization

/// The work on a database that waits for the disk, on another thread.
///
/// A checkpoint moves the write-ahead log into the database file, through a connection of its own. In passive mode, it
/// waits for no other connection, and none waits for it. If writes never pause, that alone would let the log grow
/// without end: see ``longestLog``. Syncing needs no connection: the log holds every commit since the last checkpoint,
/// and SQLite syncs it before a checkpoint and the database after one. So syncing the log makes all commits durable.
/// See docs/decisions/0006.
final class Maintenance: Sendable {
    private let path: String
    private let thread = WorkThread(.disk)
    private let disk: Disk
    private let state = Mutex(State())

    private struct State {
        /// The pages of the log after the last commit, and after the one that caused the last checkpoint.
        var (pages, pagesAtCheckpoint) = (0, 0)
        /// Whether a checkpoint is to begin.
        var isScheduled = false
        /// Whether the log's file is to be emptied, so that others have its room on the disk.
        var isToBeEmptied = false
        /// Whether the log is so long that nothing is written until a checkpoint has moved all of it.
        var isBehind = false
        /// Whether syncing the log has failed, so that pages of it may not be on the disk although a later sync succeeds.
        var isDoubtful = false
        var waiting: [CheckedContinuation<Result<Void, EngineError>, Never>] = []

        /// Notes that a checkpoint is to begin.
        /// - Returns: whether none was.
        mutating func schedule() -> Bool {
            defer { isScheduled = true }
            return !isScheduled
        }
    }

    private static let pageSize = 2048
    /// The pages in the log, 4 MiB, after which a checkpoint is due. SQLite begins the log anew afterwards.
    private static let pagesBetweenCheckpoints = (4 << 20) / pageSize
    /// The pages in the log, 16 MiB, after which writes have to wait for a checkpoint. SQLite begins the log anew only
    /// when all of it is in the database, and writes that never pause always add to it meanwhile.
    private static let longestLog = (16 << 20) / pageSize
    /// The pages in the log, 64 MiB, after which writes are refused.
    private static let mostPages = (64 << 20) / pageSize
    /// The bytes of the log that it keeps, since SQLite shortens it to them when it begins anew: `journal_size_limit`.
    static let keptLog = 4 << 20

    init(databasePath: String, disk: Disk) {
        path = databasePath
        self.disk = disk
    }

    private func run(_ work: @escaping @Sendable () -> Void) {
        if let run = disk.run { run(work) } else { thread.run(work) }
    }

    /// Notes a commit, after which the log has this many pages, and starts a checkpoint when one is due.
    func noteLog(pages: Int) {
        let isDue = state.withLock { state in
            // SQLite has begun the log anew.
            if pages < state.pages { state.pagesAtCheckpoint = 0 }
            // A long transaction. The next one may come much later.
            if pages - state.pages > Self.pagesBetweenCheckpoints { state.isToBeEmptied = true }
            state.pages = pages
            if pages > Self.mostPages { state.isBehind = true }
            guard state.isBehind || pages - state.pagesAtCheckpoint >= Self.pagesBetweenCheckpoints else {
                return false
            }
            state.pagesAtCheckpoint = pages
            return state.schedule()
        }
        if isDue { run { self.checkpoint() } }
    }

    /// The bytes of the log's file.
    var logBytes: Int {
        var status = stat()
        return stat(path + "-wal", &status) == 0 ? Int(status.st_size) : 0
    }

    /// Has the log emptied if its file has more than so many bytes. What a failed transaction has written there stays
    /// otherwise until the next one begins the log anew.
    func emptyLog(beyond bytes: Int) {
        guard logBytes > bytes else { return }
        let isNew = state.withLock { state in
            state.isToBeEmptied = true
            return state.schedule()
        }
        if isNew { run { self.checkpoint() } }
    }

    /// Throws if so much is in the log that writes have to wait until the disk has caught up.
    func checkLog() throws(EngineError) {
        let (isBehind, isDue) = state.withLock { ($0.isBehind, $0.isBehind && $0.schedule()) }
        if isDue { run { self.checkpoint() } }
        if isBehind { throw .storage("the disk is too slow for what is written; try again later") }
    }

    private func checkpoint() {
        let isToBeEmptied = state.withLock { state in
            defer { (state.isScheduled, state.isToBeEmptied) = (false, false) }
            return state.isToBeEmptied
        }
        // A checkpoint that fails is repeated with the next one. Until then the log only gets longer.
        // A database that was set aside meanwhile must not be created again here.
        guard access(path, F_OK) == 0 else { return }
        if state.withLock(\.isDoubtful) {
            // Moving its pages and leaving it would let SQLite lay what comes before a missing page over them again.
            if case .success = replaceLog() { state.withLock { $0.isBehind = false } }
            return
        }
        guard let connection = try? BriefConnection(path, flags: SQLITE_OPEN_READWRITE) else { return }
        var log = connection.checkpoint(SQLITE_CHECKPOINT_PASSIVE)
        if isToBeEmptied || log.pages > Self.longestLog, !log.hasFailed {
            // Of what came meanwhile, little is left for the last checkpoint to do. But writes wait while it syncs, and with
            // them the thread that answers everybody, so it must not be a slow disk.
            let start = ContinuousClock.now
            log = connection.checkpoint(SQLITE_CHECKPOINT_PASSIVE)
            if !log.hasFailed, ContinuousClock.now - start < disk.quickCheckpoint {
                log = connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
            }
        }
        state.withLock { state in
            // Of an empty log, SQLite doesn't say how much was moved.
            if log.moved >= state.pages || log.pages == 0 { state.isBehind = false }
            if log.hasFailed { state.isDoubtful = true }
            if isToBeEmptied, log.pages != 0 { state.isToBeEmptied = true }
        }
    }

    /// Returns when everything that was committed before the call is on the disk.
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
        // Calls from here on wait for the next round, because their commits may be later than this sync.
        let (waiting, isDoubtful) = state.withLock { state in
            defer { state.waiting = [] }
            return (state.waiting, state.isDoubtful)
        }
        let result = isDoubtful ? replaceLog() : syncLog()
        for continuation in waiting { continuation.resume(returning: result) }
    }

    /// Moves what is in a log whose pages may be lost into the database, and empties the log: after a power cut, SQLite
    /// would recover only what comes before the first page that is missing.
    private func replaceLog() -> Result<Void, EngineError> {
        do {
            guard try BriefConnection(path, flags: SQLITE_OPEN_READWRITE).emptyLog() else {
                return .failure(.storage("the disk has failed to keep \(path)-wal, which is not replaced yet"))
            }
        } catch {
            return .failure(EngineError(error))
        }
        state.withLock { $0.isDoubtful = false }
        return syncLog()
    }

    private func syncLog() -> Result<Void, EngineError> {
        let directory = String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)])
        for file in [path + "-wal", directory] {
            let descriptor = open(file, O_RDONLY | O_CLOEXEC)
            // Without a log, nothing was written since SQLite last removed it.
            if descriptor < 0 && errno == ENOENT { continue }
            guard descriptor >= 0 else { return .failure(failure("opening", file)) }
            defer { close(descriptor) }
            guard disk.synchronize(descriptor, file) == 0 else {
                defer { state.withLock { $0.isDoubtful = true } }
                return .failure(failure("syncing", file))
            }
        }
        return .success(())
    }

    private func failure(_ verb: String, _ file: String) -> EngineError {
        errno == ENOSPC || errno == EDQUOT
            ? .diskFull : .storage("\(verb) \(file): \(String(cString: strerror(errno)))")
    }
}
