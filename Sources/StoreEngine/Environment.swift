// SPDX-License-Identifier: Apache-2.0

/// Time and chance, passed in so that a simulation can run the same code with its own.
public struct Environment: Sendable {
    /// Microseconds since 1970, by a clock that may be wrong and may jump.
    public var time: @Sendable () -> UInt64
    /// 64 random bits.
    public var random: @Sendable () -> UInt64

    /// An environment of its parts.
    public init(time: @escaping @Sendable () -> UInt64, random: @escaping @Sendable () -> UInt64) {
        self.time = time
        self.random = random
    }
}
