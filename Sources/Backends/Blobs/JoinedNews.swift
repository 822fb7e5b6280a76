// SPDX-License-Identifier: Apache-2.0

internal import Replication

/// What the last pull found and joined.
struct JoinedNews: Sendable {
    /// The digests of the heads that are joined.
    var heads: Set<Bits128> = []
    /// The digests of those with a state that was passed over. The next pull reads them again.
    var gaps: Set<Bits128> = []
    /// The digests of the states that are joined, by store.
    var states: [String: Set<Bits128>] = [:]
    /// The digests of the states that were passed over, by store.
    var passedOver: [String: Set<Bits128>] = [:]
    /// The digests of the states that could not be read.
    var unread: Set<Bits128> = []
    /// Sentences about corrupt states of these heads, by store and digest.
    var corrupt: [String: [Bits128: String]] = [:]

    /// Makes an empty record.
    init() {}

    /// Makes the record of a pull.
    init(_ result: HeadNews.Result, corrupt: [String: [Bits128: String]]) {
        (heads, gaps, states) = (result.heads, result.headsWithGaps, result.states)
        (passedOver, unread) = (result.passedOver, result.unread)
        self.corrupt = corrupt
    }

    /// Forgets what was joined, so that everything is joined again. Corrupt states stay recorded.
    mutating func forgetStates() { (heads, gaps, states, passedOver, unread) = ([], [], [:], [:], []) }

    /// The digests of the heads of which nothing is to be read.
    var wholeHeads: Set<Bits128> { heads.subtracting(gaps) }
}
