// SPDX-License-Identifier: Apache-2.0

internal import SeededRandom

/// Random numbers that a seed repeats.
public struct Chance: RandomNumberGenerator {
    private var generator: SplitMix

    /// The numbers of a seed, in one of several independent streams.
    public init(seed: UInt64, stream: UInt64 = 0) {
        generator = SplitMix(seed: seed &* 0x9E37_79B9_7F4A_7C15 ^ stream &* 0xD134_2543_DE82_EF95)
        _ = next()
    }

    /// 64 random bits.
    public mutating func next() -> UInt64 { generator.next() }

    /// True with a probability.
    mutating func happens(_ probability: Double) -> Bool {
        Double(next() >> 11) * 0x1p-53 < probability
    }

    /// A number below a bound.
    mutating func below(_ bound: Int) -> Int {
        bound <= 1 ? 0 : Int(truncatingIfNeeded: next().multipliedFullWidth(by: UInt64(bound)).high)
    }

    /// A number of a range.
    mutating func of(_ range: ClosedRange<Int>) -> Int {
        range.lowerBound + below(range.count)
    }

    /// One of several.
    mutating func one<T>(of choices: [T]) -> T { choices[below(choices.count)] }

    /// A time, short more often than long: each order of magnitude is as likely.
    mutating func time(_ shortest: UInt64, _ longest: UInt64) -> UInt64 {
        var scale = shortest
        while scale < longest, happens(0.6) { scale *= 4 }
        return min(longest, scale + UInt64(below(Int(scale))))
    }
}
