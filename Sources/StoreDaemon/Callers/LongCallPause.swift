// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// A rest of a user's calls that may take long, after one of them did.
///
/// The rest is several times as long as the call took, and longer the more users rest, so that all of them together
/// leave most of the thread's time to others.
@BusActor
final class LongCallPause {
    private let pool: SharePool
    private var end: EventSource?
    /// Called after a rest.
    var whenOver: (() -> Void)?

    /// The shortest time that counts, in microseconds. Others hardly notice less.
    nonisolated static let long: UInt64 = 20_000
    private static let longestCounted: UInt64 = 1_000_000

    init(of pool: SharePool) { self.pool = pool }

    /// Whether the user's calls that may take long must wait.
    var isUnderWay: Bool { end != nil }

    /// Counts the time that a call took on the thread that answers everybody's calls.
    /// - Parameter microseconds: processor time. While other processes run, the call delays no other caller.
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
