// SPDX-License-Identifier: Apache-2.0

// A head is what one device publishes: of each store the state that it holds, in one blob that it replaces as a
// whole. Nobody else writes it, so nothing has to be locked, compared or retried; readers join the heads of all.
//
// Of a store a head has a part: the segments that hold the base, and what has changed since, the tail, with which
// a small change costs a small head. The part's digest is that of the whole state, however it is cut: who has
// joined a state with that digest need not read it again, wherever it turns up.
//
// The last 32 bytes are the sum of all others; a head that was torn, cut or mixed with another is no head. A head
// never has the length of the one before it, because there are servers that take two versions of one length and
// one second for the same.
//
// docs/remote-format.md has the bytes.

internal import PropertyList
internal import StoreEngine
internal import SyncEngine

/// One device's publication.
struct Head: Equatable, Sendable {
    /// The account as the writer knew it; another identifier of the same account may have turned up since.
    var account: Bits128
    /// Under which the writer writes.
    var origin: Origin
    /// Which of the writer's publications it is.
    var sequence: UInt64
    /// When it was written, in microseconds since 1970 by the writer's clock; for people.
    var time: UInt64
    /// What the writer calls itself.
    var device: RemoteDevice
    /// What it holds, by the stores' identifiers.
    var parts: [String: Part]

    /// No head is longer.
    static let limit = 4 << 20

    /// One store's state.
    struct Part: Equatable, Sendable {
        /// The digest of the state.
        var digest: Bits128
        /// The dots that the state has taken in.
        var context: Context
        /// The names of the base's segments, a bucket each; zero for a bucket without entries.
        var segments: [Bits128]
        /// The entries that are not in the base as they are now.
        var tail: [Key: Entry]
        /// The keys that have an entry in the base and none now, sorted.
        var removed: [Key]

        /// The names of segments that have to be there.
        var segmentNames: [Bits128] { segments.filter { $0 != .zero } }

        /// The state, given the entries of the base.
        func state(over base: [Key: Entry]) -> StoreState {
            var entries = base
            for key in removed { entries[key] = nil }
            entries.merge(tail) { $1 }
            return StoreState(entries: entries, context: context)
        }
    }
}
