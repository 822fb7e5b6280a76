// SPDX-License-Identifier: Apache-2.0

// A head as it is written: over an index, and with long version vectors in segments of their own. Readers need the
// index and these segments.

internal import PropertyList
internal import Replication
internal import Sealing

/// A store's part, as it is written in an index or a head.
package struct WrittenPart: Equatable {
    var digest: Bits128
    var vectorSegment = Bits128.zero
    /// What the version vector adds to that of the segment, or to that of the index's part.
    var vector: VersionVector
    var form: Form
    var tail: [Key: Entry]
    var removed: Set<Key>

    enum Form: Equatable {
        /// The part lists all of its buckets.
        case whole([BaseSegment])
        /// The part is the index's, except for replaced buckets, by position, which have these segments and nothing of
        /// the index's tail; and for forgotten keys, which are no longer in the tail, nor among the removed keys.
        case over(replaced: [Int: Bits128], forgotten: Set<Key>)
    }
}

/// A head without what it takes from the index and other segments.
package struct WrittenHead: Equatable {
    /// Everything but the parts.
    var head: Head
    /// The index's stores that the head doesn't have.
    var absent: Set<String>
    /// The parts that differ from those in the index.
    var parts: [String: WrittenPart]
}

extension Head.Part {
    /// Returns the part as it is written without an index, given the version vector in its segment.
    func written(over contextBase: VersionVector) -> WrittenPart {
        WrittenPart(
            digest: digest, vectorSegment: vectorSegment, vector: vector.subtracting(contextBase),
            form: .whole(base), tail: tail, removed: removed)
    }

    /// Returns the part as it is written over an index's part; `nil` if it isn't a later form of that part.
    func written(over index: Head.Part, _ wrapping: Wrapping) -> WrittenPart? {
        guard vectorSegment == index.vectorSegment, vector.isSuperset(of: index.vector),
            base.map(\.bucket) == index.base.map(\.bucket)
        else { return nil }
        var replaced: [Int: Bits128] = [:]
        for (place, segment) in base.enumerated() where segment.name != index.base[place].name {
            replaced[place] = segment.name
        }
        let (below, belowRemoved) = index.changes(outside: replaced, wrapping)
        let forgotten = Set(below.keys).union(belowRemoved).filter { tail[$0] == nil && !removed.contains($0) }
        return WrittenPart(
            digest: digest, vectorSegment: vectorSegment, vector: vector.subtracting(index.vector),
            form: .over(replaced: replaced, forgotten: forgotten),
            tail: tail.filter { below[$0.key] != $0.value }, removed: removed.subtracting(belowRemoved))
    }

    /// Returns the tail and the removed keys, except those in replaced buckets.
    fileprivate func changes(outside replaced: [Int: Bits128], _ wrapping: Wrapping) -> ([Key: Entry], Set<Key>) {
        if replaced.isEmpty { return (tail, removed) }
        func isKept(_ key: Key) -> Bool {
            base.place(ofHash: wrapping.hash(of: key)).map { replaced[$0] == nil } ?? true
        }
        return (tail.filter { isKept($0.key) }, removed.filter(isKept))
    }
}

extension WrittenPart {
    /// Returns the part over an index's part and the version vector of its segment; `nil` if it doesn't fit them.
    func part(over index: Head.Part?, vector base: VersionVector, _ wrapping: Wrapping) -> Head.Part? {
        var part = Head.Part(
            digest: digest, vector: base, vectorSegment: vectorSegment, base: [], tail: tail, removed: removed)
        part.vector.formUnion(vector)
        switch form {
        case .whole(let base):
            part.base = base
        case .over(let replaced, let forgotten):
            guard let index, replaced.keys.allSatisfy(index.base.indices.contains) else { return nil }
            part.vectorSegment = index.vectorSegment
            part.vector.formUnion(index.vector)
            part.base = index.base
            for (place, name) in replaced { part.base[place].name = name }
            let (below, belowRemoved) = index.changes(outside: replaced, wrapping)
            for (key, entry) in below where tail[key] == nil && !removed.contains(key) && !forgotten.contains(key) {
                part.tail[key] = entry
            }
            part.removed.formUnion(belowRemoved.filter { tail[$0] == nil && !forgotten.contains($0) })
        }
        if part.base.isEmpty, !part.removed.isEmpty { return nil }
        return part
    }
}
