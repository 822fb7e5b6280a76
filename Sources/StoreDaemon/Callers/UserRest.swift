// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// How long a user's calls that may take long wait, since one of them has.
///
/// After a long one the user's next ones wait several times as long, and longer the more users do that, so that all of
/// them together leave most of the thread's time to others.
@BusActor
final class UserRest {
    private let pool: SharePool
    private var end: EventSource?
    /// Called after a rest.
    var whenOver: (() -> Void)?

    /// Others hardly notice what takes less, in microseconds.
    nonisolated static let long: UInt64 = 20_000
    private static let longestCounted: UInt64 = 1_000_000

    init(of pool: SharePool) { self.pool = pool }

    /// Whether the user's calls that may take long wait.
    var isUnderWay: Bool { end != nil }

    /// Counts what a call took of the thread that answers everybody's.
    /// - Parameter microseconds: of processor time; while other processes run, the call delays no other caller.
    func note(_ microseconds: UInt64) {
        guard microseconds >= Self.long else { return }
        if end == nil { pool.restingUsers += 1 }
        let time = min(microseconds, Self.longestCounted) * 4 * UInt64(pool.restingUsers)
        end = EventLoop.shared.after(.microseconds(Int64(time)), accuracy: .milliseconds(1)) { [weak self] in
            guard let self else { return }
            end = nil
            pool.restingUsers -= 1
            whenOver?()
        }
    }
}
