// SPDX-License-Identifier: Apache-2.0

internal import Replication

/// What was joined, of what was there at the last pull.
struct JoinedNews: Sendable {
    /// Heads whose news are joined.
    var heads: Set<Bits128> = []
    /// The digests of states that are joined.
    var states: [String: Set<Bits128>] = [:]
    /// The digests of states that were not read though their heads count as joined.
    var passedOver: [String: Set<Bits128>] = [:]
    /// What is wrong with states of these heads that were read and make no sense, by store and digest.
    var corrupt: [String: [Bits128: String]] = [:]

    /// Nothing.
    init() {}

    /// What a pull has joined.
    init(_ result: HeadNews.Result, corrupt: [String: [Bits128: String]]) {
        (heads, states, passedOver) = (result.heads, result.states, result.passedOver)
        self.corrupt = corrupt
    }

    /// Everything is to be joined anew; what makes no sense stays so.
    mutating func forgetStates() { (heads, states, passedOver) = ([], [:], [:]) }
}
