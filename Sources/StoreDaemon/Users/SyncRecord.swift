// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc
internal import SDBus

/// Keeps an account's ``SyncDeaths`` in the user's directory: written before a sync cycle and removed after it. It need
/// not survive a power cut.
@BusActor
final class SyncRecord {
    private var deaths: SyncDeaths
    private let path: String
    /// Cycles under way: a call may find one, and end before it.
    private var running = 0
    /// Until when one that is suspected has its cycle for itself, among the suspected of all users.
    private static var takenUntil: UInt64 = 0
    /// A remote that is silent must not keep the others for longer, in microseconds.
    private static let longestTurn: UInt64 = 5_000_000

    init(in directory: String) {
        path = directory + "/sync-cycle"
        deaths = SyncDeaths(
            Self.read(path), boot: Self.read("/proc/sys/kernel/random/boot_id").filter { !$0.isWhitespace })
        if deaths.isSuspect { write() }
    }

    /// How many seconds the account has to wait; `nil`: none.
    var wait: Int? { deaths.wait(EventLoop.now) }

    /// How long another account's cycle is waited for; `nil`: it need not be.
    var turn: Duration? {
        guard deaths.isSuspect, running == 0, EventLoop.now < Self.takenUntil else { return nil }
        return .microseconds(Int64(Self.takenUntil - EventLoop.now))
    }

    /// A cycle begins.
    func begin() {
        running += 1
        guard running == 1 else { return }
        if deaths.isSuspect { Self.takenUntil = EventLoop.now + Self.longestTurn }
        deaths.begin(EventLoop.now)
        write()
    }

    /// A cycle has ended, and the process has not.
    func end() {
        guard running > 0 else { return }
        running -= 1
        guard running == 0 else { return }
        if deaths.isSuspect { Self.takenUntil = 0 }
        deaths = SyncDeaths(boot: deaths.boot)
        unlink(path)
    }

    /// The service ends as it should.
    func stop() { while running > 0 { end() } }

    // MARK: The file

    private static func read(_ path: String) -> String { Files.text(of: path, atMost: 255) ?? "" }

    /// Where it can't be written, the sync goes on without.
    private func write() {
        do throws(SystemError) { try Files.overwrite(path, with: deaths.text) } catch {}
    }
}
