// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Time and randomness, passed in so that the simulation can run the same code with its own.
public struct Environment: Sendable {
    /// Microseconds since 1970, by a clock that may be wrong and may jump.
    public var time: @Sendable () -> UInt64
    /// 64 random bits.
    public var random: @Sendable () -> UInt64
    /// How to wait for the disk; the simulation has its own.
    package var disk: Disk = .system

    /// Makes an environment from its parts.
    public init(time: @escaping @Sendable () -> UInt64, random: @escaping @Sendable () -> UInt64) {
        self.time = time
        self.random = random
    }

    /// The clock and the randomness of this machine.
    public static let system = Environment(
        time: {
            var now = timespec()
            clock_gettime(CLOCK_REALTIME, &now)
            return UInt64(max(0, now.tv_sec)) * 1_000_000 + UInt64(now.tv_nsec) / 1000
        },
        random: { .random(in: .min ... .max) })
}

/// How to do work that waits for a disk.
package struct Disk: Sendable {
    /// Runs such work; `nil` gives each database a thread for it.
    package var run: (@Sendable (@escaping @Sendable () -> Void) -> Void)?
    /// Syncs a file to the disk as fdatasync(2) does, and returns 0, or -1 with `errno` set.
    package var synchronize: @Sendable (_ descriptor: Int32, _ path: String) -> Int32
    /// The longest that a checkpoint takes on a disk whose syncs writes may wait for.
    package var quickCheckpoint = Duration.milliseconds(200)

    /// Makes a disk from its parts.
    package init(
        run: (@Sendable (@escaping @Sendable () -> Void) -> Void)?,
        synchronize: @escaping @Sendable (Int32, String) -> Int32
    ) {
        self.run = run
        self.synchronize = synchronize
    }

    /// This machine's disk.
    package static let system = Disk(run: nil, synchronize: { descriptor, _ in fdatasync(descriptor) })
}
