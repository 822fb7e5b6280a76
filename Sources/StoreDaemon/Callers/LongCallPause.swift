// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// A rest of a user's calls, after the loop has spent long on one of them, or on the user's data.
///
/// The rest is several times as long as that took, and longer the more users rest, so that all of them together
/// leave most of the thread's time to others.
@BusActor
final class LongCallPause {
    private let pool: SharePool
    private var end: EventSource?
    /// When the rest ends, on the loop's clock.
    private var endTime: UInt64 = 0
    /// Called after a rest.
    var whenOver: (() -> Void)?

    /// The shortest time that counts, in microseconds. Others hardly notice less.
    nonisolated static let long: UInt64 = 20_000
    /// The longest time that counts: one user's rest must be shorter than calls wait for their answers, 25 seconds.
    private static let longestCounted: UInt64 = 5_000_000

    init(of pool: SharePool) { self.pool = pool }

    /// Whether the user's calls must wait.
    var isUnderWay: Bool { end != nil }

    /// Counts time of the thread that answers everybody's calls.
    /// - Parameter microseconds: processor time. While other processes run, no other caller is delayed.
    func note(_ microseconds: UInt64) {
        guard microseconds >= Self.long else { return }
        if end == nil { pool.restingUsers += 1 }
        let time = min(microseconds, Self.longestCounted) * 4 * UInt64(pool.restingUsers)
        // What took less ends no rest earlier.
        guard EventLoop.now + time > endTime else { return }
        endTime = EventLoop.now + time
        end = EventLoop.shared.after(.microseconds(Int64(time)), accuracy: .milliseconds(1)) { [weak self] in
            guard let self else { return }
            end = nil
            pool.restingUsers -= 1
            whenOver?()
        }
    }
}
