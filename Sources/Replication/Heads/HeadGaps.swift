// SPDX-License-Identifier: Apache-2.0

/// Heads that count as joined, though some of their states could not be read and need not be: see
/// ``HeadNews/passOver(_:of:read:)``.
///
/// Two states with equal version vectors may hold different entries, so what was skipped is read once it can be.
/// What is still arriving arrives soon, and what is lost never does. So it is tried again ever less often: in the 1st,
/// 2nd, 4th and 8th pull, and so on.
package struct HeadGaps: Sendable {
    /// The digests of the heads.
    package private(set) var heads: Set<Bits128> = []
    /// The digests of the states, by store.
    package private(set) var states: [String: Set<Bits128>] = [:]
    private var pulls: UInt64 = 0

    /// Makes a record of no heads.
    package init() {}

    /// Whether there are such heads.
    package var isEmpty: Bool { heads.isEmpty }

    /// Begins a pull that looks at the heads.
    package mutating func beginPull() { if !isEmpty { pulls += 1 } }

    /// The digests of the heads that this pull reads again. To it, they are not joined.
    package var headsToRead: Set<Bits128> { isDue ? heads : [] }

    /// The digests of the states that this pull doesn't look at, by store.
    package var statesToSkip: [String: Set<Bits128>] { isDue ? [:] : states }

    private var isDue: Bool { pulls.nonzeroBitCount == 1 }

    /// Notes what a pull has skipped.
    package mutating func note(_ result: HeadNews.Result) {
        if heads != result.headsWithGaps { pulls = 0 }
        (heads, states) = (result.headsWithGaps, result.skipped)
    }
}
