// SPDX-License-Identifier: Apache-2.0

/// Measures how long a piece of work keeps the loop's thread busy.
@BusActor
package struct WorkTime {
    private var wall = EventLoop.now
    private var processor = EventLoop.processorTime

    /// Begins now.
    package init() {}

    /// Returns the processor time since the beginning, in microseconds. While other processes run, the work delays
    /// nobody.
    /// - Parameter shortest: the shortest time that counts. Less is 0, because the exact time costs a system call.
    package func taken(ifAtLeast shortest: UInt64) -> UInt64 {
        guard EventLoop.now >= wall + shortest else { return 0 }
        let now = EventLoop.processorTime
        return now >= processor + shortest ? now - processor : 0
    }

    /// Begins again now. If that is soon after the beginning, the thread is taken to have had the processor since then,
    /// because asking costs a system call.
    package mutating func restart() {
        let elapsed = EventLoop.now - wall
        if elapsed < Self.short { leaveOut(elapsed) } else { self = WorkTime() }
    }

    /// Few interruptions by other processes are shorter than this, in microseconds.
    private static let short: UInt64 = 100

    /// Leaves out a part of the time, which was for somebody else.
    package mutating func leaveOut(_ microseconds: UInt64) {
        wall += microseconds
        processor += microseconds
    }
}
