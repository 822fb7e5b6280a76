// SPDX-License-Identifier: Apache-2.0

internal import Replication

/// What the last pull found and joined.
struct JoinedNews: Sendable {
    /// The digests of the heads that are joined.
    var heads: Set<Bits128> = []
    /// Those with a state that was skipped.
    var gaps = HeadGaps()
    /// The digests of the states that are joined, by store.
    var states: [String: Set<Bits128>] = [:]
    /// The digests of the states that could not be read.
    var unread: Set<Bits128> = []
    /// Sentences about corrupt states of these heads, by store and digest.
    var corrupt: [String: [Bits128: String]] = [:]

    /// Makes an empty record.
    init() {}

    /// Makes the record of a pull.
    init(_ result: HeadNews.Result, after former: HeadGaps, corrupt: [String: [Bits128: String]]) {
        (heads, states, unread) = (result.heads, result.states, result.unread)
        gaps = former
        gaps.note(result)
        self.corrupt = corrupt
    }

    /// Forgets what was joined, so that everything is joined again. Corrupt states stay recorded.
    mutating func forgetStates() { (heads, gaps, states, unread) = ([], HeadGaps(), [:], []) }
}
