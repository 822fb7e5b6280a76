// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus

/// Records that sync cycles of an account are under way: see ``Deaths``.
///
/// An account that was in a cycle when the process died need not be the culprit, because others were as well. So
/// suspected accounts run their next cycles one after the other, which clears all but one.
@BusActor
final class SyncRecord {
    private let record: DeathRecord
    /// The number of cycles under way: a call may join a cycle and return before it ends.
    private var running = 0
    /// Until when a suspected account has its turn, among the suspected ones of all users.
    private static var takenUntil: UInt64 = 0
    /// The longest turn, in microseconds, so that a silent remote doesn't block the others for longer.
    private static let longestTurn: UInt64 = 5_000_000

    init(in directory: String) { record = DeathRecord(of: .cycle, in: directory) }

    /// Why the account has to wait; `nil` if it need not.
    var obstacle: RemoteError? { record.obstacle }

    /// How long to wait for another account's turn; `nil` if there is none.
    var turn: Duration? {
        guard record.isSuspect, running == 0, EventLoop.now < Self.takenUntil else { return nil }
        return .microseconds(Int64(Self.takenUntil - EventLoop.now))
    }

    /// Records that a cycle begins.
    func begin() {
        running += 1
        guard running == 1 else { return }
        if record.isSuspect { Self.takenUntil = EventLoop.now + Self.longestTurn }
        record.begin()
    }

    /// Records that a cycle has ended, which clears the account.
    func end() {
        guard running > 0 else { return }
        running -= 1
        guard running == 0 else { return }
        if record.isSuspect { Self.takenUntil = 0 }
        record.end()
    }

    /// Records that the service ends normally.
    func stop() { while running > 0 { end() } }
}
