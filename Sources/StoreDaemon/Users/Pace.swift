// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// Work on the loop's thread that callers can ask for again and again: it takes a tenth of the time at most.
struct Pace {
    private var next: UInt64 = 0

    /// Whether enough time has passed since the work was done last.
    var isDue: Bool { EventLoop.now >= next }

    /// Does the work, which is due or can't wait.
    mutating func run<T>(_ work: () throws -> T) rethrows -> T {
        let start = EventLoop.now
        defer {
            let end = EventLoop.now
            next = end + 10 * (end - min(start, end))
        }
        return try work()
    }
}
