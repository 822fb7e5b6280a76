// SPDX-License-Identifier: Apache-2.0

/// Random numbers that a seed repeats, on every machine and for ever: SplitMix64 (Steele, Lea, Flood: "Fast splittable
/// pseudorandom number generators", 2014). For tests; they are no secret.
package struct SplitMix: RandomNumberGenerator, Sendable {
    @usableFromInline
    var state: UInt64

    /// The numbers of a seed.
    @inlinable
    package init(seed: UInt64) { state = seed }

    /// 64 random bits.
    @inlinable
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var bits = state
        bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        return bits ^ (bits >> 31)
    }
}
