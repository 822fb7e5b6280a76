// SPDX-License-Identifier: Apache-2.0

internal import SeededRandom
internal import Synchronization

/// Random numbers that are the same for the same seed.
public final class Dice: Sendable {
    private let generator: Mutex<SplitMix>

    /// Numbers of a seed.
    public init(seed: UInt64) { generator = Mutex(SplitMix(seed: seed)) }

    /// The next one.
    public func roll() -> UInt64 { generator.withLock { $0.next() } }
}
