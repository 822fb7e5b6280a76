// SPDX-License-Identifier: Apache-2.0

internal import SeededRandom
internal import Synchronization

/// A generator of random numbers, which are the same for the same seed.
public final class Dice: Sendable {
    private let generator: Mutex<SplitMix>

    /// Makes a generator with this seed.
    public init(seed: UInt64) { generator = Mutex(SplitMix(seed: seed)) }

    /// Returns the next number.
    public func roll() -> UInt64 { generator.withLock { $0.next() } }
}
