// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Random numbers that are the same for the same seed.
public final class Dice: Sendable {
    private let state: Mutex<UInt64>

    /// Numbers of a seed.
    public init(seed: UInt64) { state = Mutex(seed) }

    /// The next one.
    public func roll() -> UInt64 {
        state.withLock { state in
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }
}
