// SPDX-License-Identifier: Apache-2.0

// What the heads of an account mean: which states are new, what has to arrive first, and what counts as joined once it
// was read. The heads are decoded already; how their states are cut into segments doesn't matter here.

/// A store's state, as a head describes it.
package struct HeadState: Sendable {
    /// The digest of the state, which doesn't depend on how it is cut.
    package let digest: Bits128
    /// The dots that the state has taken in.
    package let vector: VersionVector

    /// Makes a state from its parts.
    package init(digest: Bits128, vector: VersionVector) {
        self.digest = digest
        self.vector = vector
    }
}

extension [String: HeadState] {
    /// Whether these states together cover everything that others have seen.
    package func dominate(_ others: Self) -> Bool {
        others.allSatisfy { store, state in
            state.vector.dots.isEmpty || self[store]?.vector.isSuperset(of: state.vector) == true
        }
    }
}

extension [String: VersionVector] {
    /// Adds what states have taken in.
    mutating func formUnion(_ states: [String: HeadState]) {
        for (store, state) in states { self[store, default: VersionVector()].formUnion(state.vector) }
    }
}

/// A head that was found.
package struct SeenHead: Sendable {
    /// The file's name.
    package let name: String
    /// The writer's origin.
    package let origin: Origin
    /// The number of the publication among the writer's.
    package let sequence: UInt64
    /// The digest of the head's bytes.
    package let digest: Bits128
    /// Whether the file's name is not its origin's, as a sync tool names copies. Its segments may never arrive, so no
    /// device waits for them.
    package let isCopy: Bool
    /// Whether all of its states could be determined.
    package let isWhole: Bool
    /// Its states, by the stores' identifiers.
    package let states: [String: HeadState]
    /// The names of the segments that it needs.
    package let segments: Set<Bits128>

    /// Makes a head from its parts.
    package init(
        _ identity: HeadIdentity, under name: String, isWhole: Bool, states: [String: HeadState],
        segments: Set<Bits128>
    ) {
        (self.name, self.isWhole, self.states, self.segments) = (name, isWhole, states, segments)
        (origin, sequence, digest) = (identity.origin, identity.sequence, identity.digest)
        isCopy = name != identity.origin.description
    }
}

/// What is new in heads, and how much of it was read.
package struct HeadNews: Sendable {
    /// The digests of the new states, by store.
    package let states: [String: Set<Bits128>]
    /// Sentences about corrupt states, by store and digest.
    package private(set) var corrupt: [String: [Bits128: String]] = [:]

    private let heads: [SeenHead]
    /// The digests of heads that were joined before.
    private let known: Set<Bits128>
    /// The digests of states that were joined before, by store.
    private let joined: [String: Set<Bits128>]
    /// The digests of states that were read now, by store.
    private var settled: [String: Set<Bits128>] = [:]
    /// The digests of states that could not be read and need not be, by store.
    private var skipped: [String: Set<Bits128>]

    /// Determines what is new in heads.
    /// - Parameters:
    ///   - known: the digests of heads that were joined before, without ``HeadGaps/headsToRead``.
    ///   - joined: the digests of states that were joined before, by store.
    ///   - passedOver: ``HeadGaps/statesToSkip``. Such a state is read if another head has it.
    ///   - corrupt: sentences about corrupt states of known heads.
    package init(
        _ heads: [SeenHead], known: Set<Bits128>, joined: [String: Set<Bits128>],
        passedOver: [String: Set<Bits128>] = [:], corrupt: [String: [Bits128: String]] = [:]
    ) {
        self.heads = heads
        skipped = passedOver
        self.known = known
        let old = heads.filter { known.contains($0.digest) }
        for head in old where !corrupt.isEmpty {
            for (store, state) in head.states {
                guard let sentence = corrupt[store]?[state.digest] else { continue }
                self.corrupt[store, default: [:]][state.digest] = sentence
            }
        }
        var joined = joined
        for head in old {
            // A state that was corrupt or skipped isn't joined: another head may have its segments.
            for (store, state) in head.states
            where self.corrupt[store]?[state.digest] == nil && passedOver[store]?.contains(state.digest) != true {
                joined[store, default: []].insert(state.digest)
            }
        }
        self.joined = joined
        var states: [String: Set<Bits128>] = [:]
        for head in heads where !known.contains(head.digest) {
            for (store, state) in head.states where joined[store]?.contains(state.digest) != true {
                states[store, default: []].insert(state.digest)
            }
        }
        self.states = states
    }

    /// The stores that have something new, sorted.
    package var stores: [String] { states.keys.sorted() }

    /// Notes that a state was read.
    package mutating func noteRead(_ digest: Bits128, of store: String) {
        corrupt[store]?[digest] = nil
        skipped[store]?.remove(digest)
        settled[store, default: []].insert(digest)
    }

    /// Notes that a state is complete, and corrupt.
    package mutating func noteCorrupt(_ digest: Bits128, of store: String, _ sentence: String) {
        corrupt[store, default: [:]][digest] = sentence
        settled[store, default: []].insert(digest)
    }

    /// Skips the unread states whose version vectors are covered by the states that were read, now or before.
    /// - Parameter vector: the joined version vector of the states that were read.
    /// - Returns: whether all remaining unread states are copies', for which no device waits.
    package mutating func passOver(_ lacking: Set<Bits128>, of store: String, read vector: VersionVector) -> Bool {
        if lacking.isEmpty { return true }
        var vector = vector
        for head in heads {
            // What a corrupt state says that it has taken in was not read.
            guard let state = head.states[store], corrupt[store]?[state.digest] == nil else { continue }
            if known.contains(head.digest) || joined[store]?.contains(state.digest) == true {
                vector.formUnion(state.vector)
            }
        }
        var needed = false
        for head in heads {
            guard let state = head.states[store], lacking.contains(state.digest) else { continue }
            if vector.isSuperset(of: state.vector) {
                skipped[store, default: []].insert(state.digest)
            } else if !head.isCopy {
                needed = true
            }
        }
        return !needed
    }

    /// What is joined at the end of a pull.
    package struct Result {
        /// The digests of the heads that are joined as a whole.
        package var heads: Set<Bits128> = []
        /// The digests of those among ``heads`` with a state that was skipped.
        package var headsWithGaps: Set<Bits128> = []
        /// The digests of the joined states, by store.
        package var states: [String: Set<Bits128>] = [:]
        /// The digests of the states that were skipped, by store.
        package var skipped: [String: Set<Bits128>] = [:]
        /// The digests of the states that could not be read.
        package var unread: Set<Bits128> = []
        /// The writers of heads with a state that is needed and was not read.
        package var lackingOrigins: Set<Origin> = []
        /// Whether every state that is needed was read, joined or not.
        package var isComplete: Bool { lackingOrigins.isEmpty }
    }

    /// Decides what is joined.
    /// - Parameter stores: the stores whose changes were joined and committed.
    package func finish(joined stores: Set<String>) -> Result {
        var result = Result()
        for head in heads {
            // A head that was joined before has nothing new, even if it can't be read completely any more.
            let isKnown = known.contains(head.digest)
            var isJoined = head.isWhole || isKnown
            var isRead = isJoined
            for (store, state) in head.states {
                if skipped[store]?.contains(state.digest) == true {
                    result.skipped[store, default: []].insert(state.digest)
                    result.headsWithGaps.insert(head.digest)
                } else if isKnown || isSettled(state.digest, of: store, stores) {
                    if corrupt[store]?[state.digest] == nil { result.states[store, default: []].insert(state.digest) }
                } else {
                    isJoined = false
                    if settled[store]?.contains(state.digest) == true { continue }
                    isRead = false
                    result.unread.insert(state.digest)
                }
            }
            if isJoined { result.heads.insert(head.digest) }
            if !isRead && !head.isCopy { result.lackingOrigins.insert(head.origin) }
        }
        return result
    }

    private func isSettled(_ digest: Bits128, of store: String, _ stores: Set<String>) -> Bool {
        if joined[store]?.contains(digest) == true { return true }
        return stores.contains(store) && settled[store]?.contains(digest) == true
    }
}
