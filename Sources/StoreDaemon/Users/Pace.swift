// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// The pace of work on the loop's thread that callers can cause repeatedly: it takes a tenth of the time at most.
struct Pace {
    private var next: UInt64 = 0
    /// The longest pause, in microseconds.
    private static let longest: UInt64 = 60_000_000

    /// Whether enough time has passed since the work was last done.
    var isDue: Bool { missing == 0 }

    /// How long it takes until enough time has passed, in microseconds.
    var missing: UInt64 { next - min(next, EventLoop.now) }

    /// Does the work, because it is due or can't wait.
    mutating func run<T>(_ work: () throws -> T) rethrows -> T {
        let start = EventLoop.now
        defer {
            let end = EventLoop.now
            next = min(max(next, end) + 10 * (end - min(start, end)), end + Self.longest)
        }
        return try work()
    }
}
