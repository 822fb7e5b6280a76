// SPDX-License-Identifier: Apache-2.0

internal import Replication

/// What the last pull found and joined.
struct JoinedNews: Sendable {
    /// The digests of the heads that are joined.
    var heads: Set<Bits128> = []
    /// The digests of the states that are joined, by store.
    var states: [String: Set<Bits128>] = [:]
    /// The digests of states that were not read though their heads count as joined, by store.
    var passedOver: [String: Set<Bits128>] = [:]
    /// The digests of the states that could not be read.
    var unread: Set<Bits128> = []
    /// Sentences about corrupt states of these heads, by store and digest.
    var corrupt: [String: [Bits128: String]] = [:]

    /// Makes an empty record.
    init() {}

    /// Makes the record of a pull.
    init(_ result: HeadNews.Result, corrupt: [String: [Bits128: String]]) {
        (heads, states, passedOver, unread) = (result.heads, result.states, result.passedOver, result.unread)
        self.corrupt = corrupt
    }

    /// Forgets what was joined, so that everything is joined again. Corrupt states stay recorded.
    mutating func forgetStates() { (heads, states, passedOver, unread) = ([], [:], [:], []) }
}
