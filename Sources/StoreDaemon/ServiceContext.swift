// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import Replication
internal import SDBus
internal import SyncEngine

/// What the parts of the service have in common: the configuration, the journal, the clock, the bus, and the writes that
/// wait.
///
/// It leads to no user and no client. A part that needs one of these gets that one, or a closure.
@BusActor
final class ServiceContext {
    /// A reload replaces it, so it is read when it is needed.
    private(set) var configuration: Configuration
    let environment = Environment.system
    let connection: BusConnection
    let writes: WriteQueue
    private var refusals = RefusalLog()

    var logger: Logger { configuration.logger }

    init(_ configuration: Configuration, connection: BusConnection, writes: WriteQueue) {
        self.configuration = configuration
        self.connection = connection
        self.writes = writes
    }

    /// Replaces the configuration, because the settings were read again.
    func renew(_ next: Configuration) { configuration = next }

    // MARK: The journal

    /// Logs a refused write, at intervals for each user.
    func logRefusedWrite(_ error: BusError, of uid: UInt32) {
        guard let line = refusals.note(error.name, error.message, ofUser: uid, EventLoop.now) else { return }
        logger.notice("\(line)")
    }

    /// Logs the refusal of calls that were not read, in the same way.
    func logRefusal(_ message: String, of uid: UInt32, _ now: UInt64) {
        guard let line = refusals.note(message, ofUser: uid, now) else { return }
        logger.notice("\(line)")
    }

    /// Logs a problem with a user's data or account that calls or sync cycles may meet again and again, at intervals.
    func logProblem(_ problem: String, of uid: UInt32) {
        guard let line = refusals.note(problem: problem, ofUser: uid, EventLoop.now) else { return }
        logger.warning("\(line)")
    }

    /// Whether to log that a user's program asked for a store without a manifest.
    func noteUndeclared(_ identifier: String, of uid: UInt32) -> Bool { refusals.noteUndeclared(identifier, of: uid) }
}
