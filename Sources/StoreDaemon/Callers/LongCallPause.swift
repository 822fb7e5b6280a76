// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// A rest of a user's calls, after the loop has spent long on them, or on the user's data.
///
/// A user may take a fifth of the thread's time in the long run, and ``allowance`` at once. The rest after more is
/// several times as long as what was taken, and longer the more users rest, so that together they leave most of the
/// thread's time to others.
@BusActor
final class LongCallPause {
    private let pool: SharePool
    private var end: EventSource?
    /// When the rest ends, on the loop's clock.
    private var endTime: UInt64 = 0
    private var share = LoopShare()
    /// Whether something that counts was done during the rest.
    private var isDisturbed = false
    /// Called after a rest.
    var whenOver: (() -> Void)?

    /// The shortest piece of work that counts, in microseconds. Others don't notice less.
    nonisolated static let shortest: UInt64 = 2_000
    /// How much a user may take at once, in microseconds.
    nonisolated static let allowance = LoopShare.allowance
    /// The longest time that counts: one user's rest must be shorter than calls wait for their answers, 25 seconds.
    private static let longestCounted: UInt64 = 5_000_000

    init(of pool: SharePool) { self.pool = pool }

    /// Whether the user's calls must wait.
    var isUnderWay: Bool { end != nil }

    /// Whether calls that can't wait may be answered: outside of a rest, or as long as they take no time that counts.
    var allowsUrgent: Bool { !isDisturbed }

    /// Counts time of the thread that answers everybody's calls.
    /// - Parameter microseconds: processor time. While other processes run, no other caller is delayed.
    func note(_ microseconds: UInt64) {
        guard microseconds >= Self.shortest else { return }
        isDisturbed = isUnderWay
        let now = EventLoop.now
        guard let taken = share.take(now, min(microseconds, Self.longestCounted)) else { return }
        begin(min(taken, Self.longestCounted), now)
    }

    private func begin(_ taken: UInt64, _ now: UInt64) {
        if pool.isEnding { return }
        if end == nil { pool.restingUsers += 1 }
        let time = taken * LoopShare.rest * UInt64(pool.restingUsers)
        // A shorter piece of work doesn't end a rest earlier.
        guard now + time > endTime else { return }
        endTime = now + time
        end = EventLoop.shared.after(.microseconds(Int64(time)), accuracy: .milliseconds(1)) { [weak self] in
            self?.finish()
        }
    }

    /// Ends the rest.
    func finish() {
        guard isUnderWay else { return }
        (end, isDisturbed) = (nil, false)
        pool.restingUsers -= 1
        whenOver?()
    }
}
