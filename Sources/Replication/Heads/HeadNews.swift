// SPDX-License-Identifier: Apache-2.0

// What a look at the heads of an account means: which states are new, what has to arrive, and what is joined when all
// of it was read. The heads are decoded; how their states are cut and read is no concern of this.

/// A state that a head says its device holds.
package struct HeadState: Sendable {
    /// The digest of the state, however it is cut.
    package let digest: Bits128
    /// What it has taken in.
    package let vector: VersionVector

    /// A state of its parts.
    package init(digest: Bits128, vector: VersionVector) {
        self.digest = digest
        self.vector = vector
    }
}

extension [String: HeadState] {
    /// Whether everything that other states have seen was taken in here.
    package func dominate(_ others: Self) -> Bool {
        others.allSatisfy { store, state in
            state.vector.dots.isEmpty || self[store]?.vector.isSuperset(of: state.vector) == true
        }
    }
}

/// A head that was found.
package struct SeenHead: Sendable {
    /// Under which name.
    package let name: String
    /// Under which its writer writes.
    package let origin: Origin
    /// Which of its writer's publications it is.
    package let sequence: UInt64
    /// The digest of its bytes.
    package let digest: Bits128
    /// It lies under a name that is not its own. What it names may never come, and nothing waits for it.
    package let isCopy: Bool
    /// All of its states could be made out.
    package let isWhole: Bool
    /// What it holds, by the stores' identifiers.
    package let states: [String: HeadState]
    /// The names of the segments that have to be there.
    package let segments: Set<Bits128>

    /// A head of its parts.
    package init(
        _ identity: HeadIdentity, under name: String, isWhole: Bool, states: [String: HeadState],
        segments: Set<Bits128>
    ) {
        (self.name, self.isWhole, self.states, self.segments) = (name, isWhole, states, segments)
        (origin, sequence, digest) = (identity.origin, identity.sequence, identity.digest)
        isCopy = name != identity.origin.description
    }
}

/// What is new in heads, and what has become of it.
package struct HeadNews: Sendable {
    /// Of each store the digests of the states that are new.
    package let states: [String: Set<Bits128>]
    /// What is wrong with states that were read and make no sense, by store and digest.
    package private(set) var corrupt: [String: [Bits128: String]] = [:]

    private let heads: [SeenHead]
    /// Heads that were joined before.
    private let known: Set<Bits128>
    /// The digests of states that were joined before.
    private let joined: [String: Set<Bits128>]
    /// Of each store the digests of what was read.
    private var settled: [String: Set<Bits128>] = [:]
    /// Of each store the digests of what could not be read and need not be, now or when its head was joined. A state that
    /// has taken in as much may hold other entries all the same, so each is read when it turns up in another head.
    private var passedOver: [String: Set<Bits128>]

    /// What is new in heads.
    /// - Parameters:
    ///   - known: the digests of heads that were joined before.
    ///   - joined: those of states that were, by store.
    ///   - passedOver: those of states that were not, though their heads were.
    ///   - corrupt: what was wrong with states of known heads.
    package init(
        _ heads: [SeenHead], known: Set<Bits128>, joined: [String: Set<Bits128>],
        passedOver: [String: Set<Bits128>], corrupt: [String: [Bits128: String]] = [:]
    ) {
        self.heads = heads
        self.passedOver = passedOver
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
            // Somebody else may have published what one's head only claims to have.
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

    /// A state was read.
    package mutating func noteRead(_ digest: Bits128, of store: String) {
        corrupt[store]?[digest] = nil
        passedOver[store]?.remove(digest)
        settled[store, default: []].insert(digest)
    }

    /// A state is there as it was written, and makes no sense.
    package mutating func noteCorrupt(_ digest: Bits128, of store: String, _ sentence: String) {
        corrupt[store, default: [:]][digest] = sentence
        settled[store, default: []].insert(digest)
    }

    /// Settles those of the states that could not be read of which others, that were, have taken in everything.
    /// - Parameter vector: what the states that were read have taken in.
    /// - Returns: whether all others are copies', which nothing waits for.
    package mutating func passOver(_ lacking: Set<Bits128>, of store: String, read vector: VersionVector) -> Bool {
        if lacking.isEmpty { return true }
        var vector = vector
        for head in heads where known.contains(head.digest) {
            if let state = head.states[store] { vector.formUnion(state.vector) }
        }
        var needed = false
        for head in heads {
            guard let state = head.states[store], lacking.contains(state.digest) else { continue }
            if vector.isSuperset(of: state.vector) {
                passedOver[store, default: []].insert(state.digest)
            } else if !head.isCopy {
                needed = true
            }
        }
        return !needed
    }

    /// What is joined at the end.
    package struct Result {
        /// The digests of the heads of which everything is.
        package var heads: Set<Bits128> = []
        /// Those of them of which something could not be read, and need not be.
        package var headsWithGaps: Set<Bits128> = []
        /// The digests of the states that are joined, by store.
        package var states: [String: Set<Bits128>] = [:]
        /// Those of states that could not be read, and need not be.
        package var passedOver: [String: Set<Bits128>] = [:]
        /// Whether everything was read that has to be, joined or not.
        package var isComplete = true
    }

    /// Decides what is joined.
    /// - Parameter stores: those whose news were joined and committed.
    package func finish(joined stores: Set<String>) -> Result {
        var result = Result()
        for head in heads {
            // Of a head that was joined before nothing is new, even if it can't be read whole any more.
            let isKnown = known.contains(head.digest)
            var isJoined = head.isWhole || isKnown
            var isRead = isJoined
            for (store, state) in head.states {
                if passedOver[store]?.contains(state.digest) == true {
                    result.passedOver[store, default: []].insert(state.digest)
                    result.headsWithGaps.insert(head.digest)
                } else if isKnown || isSettled(state.digest, of: store, stores) {
                    if corrupt[store]?[state.digest] == nil { result.states[store, default: []].insert(state.digest) }
                } else {
                    isJoined = false
                    if settled[store]?.contains(state.digest) != true { isRead = false }
                }
            }
            if isJoined { result.heads.insert(head.digest) }
            if !isRead && !head.isCopy { result.isComplete = false }
        }
        return result
    }

    private func isSettled(_ digest: Bits128, of store: String, _ stores: Set<String>) -> Bool {
        if joined[store]?.contains(digest) == true { return true }
        return stores.contains(store) && settled[store]?.contains(digest) == true
    }
}
