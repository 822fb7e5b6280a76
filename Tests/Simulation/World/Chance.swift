// SPDX-License-Identifier: Apache-2.0

internal import SeededRandom

/// Random numbers that a seed determines.
public struct Chance: RandomNumberGenerator {
    private var generator: SplitMix

    /// Makes one of a seed's independent streams.
    public init(seed: UInt64, stream: UInt64 = 0) {
        generator = SplitMix(seed: seed &* 0x9E37_79B9_7F4A_7C15 ^ stream &* 0xD134_2543_DE82_EF95)
        _ = next()
    }

    /// 64 random bits.
    public mutating func next() -> UInt64 { generator.next() }

    /// Returns true with a probability.
    mutating func happens(_ probability: Double) -> Bool {
        Double(next() >> 11) * 0x1p-53 < probability
    }

    /// A random number from 0, below a bound; 0 if the bound is less than 2.
    mutating func below(_ bound: Int) -> Int {
        bound <= 1 ? 0 : Int(truncatingIfNeeded: next().multipliedFullWidth(by: UInt64(bound)).high)
    }

    /// A random number from a range.
    mutating func of(_ range: ClosedRange<Int>) -> Int {
        range.lowerBound + below(range.count)
    }

    /// One of several values.
    mutating func one<T>(of choices: [T]) -> T { choices[below(choices.count)] }

    /// A time, short more often than long. Each step to four times the length has a probability of 0.6.
    mutating func time(_ shortest: UInt64, _ longest: UInt64) -> UInt64 {
        var scale = shortest
        while scale < longest, happens(0.6) { scale *= 4 }
        return min(longest, scale + UInt64(below(Int(scale))))
    }
}
