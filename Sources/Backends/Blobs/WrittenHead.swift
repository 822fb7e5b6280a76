// SPDX-License-Identifier: Apache-2.0

// A head as it is written: over an index, and with long version vectors in segments of their own. To read one, the index and
// these segments have to be there.

internal import PropertyList
internal import Replication
internal import Sealing

/// A store's part as an index or a head has it.
package struct WrittenPart: Equatable {
    var digest: Bits128
    var vectorSegment = Bits128.zero
    /// What the version vector has over that of the segment, or over that of the index's part.
    var vector: VersionVector
    var form: Form
    var tail: [Key: Entry]
    var removed: Set<Key>

    enum Form: Equatable {
        /// With all of its buckets.
        case whole([BaseSegment])
        /// The index's part, except: buckets, by their place, that have another segment now (and nothing of the
        /// index's tail); and keys of which the tail has nothing any more.
        case over(replaced: [Int: Bits128], forgotten: Set<Key>)
    }
}

/// A head without what it takes from elsewhere.
package struct WrittenHead: Equatable {
    /// Everything but the parts.
    var head: Head
    /// The stores of the index that the head does not have.
    var absent: Set<String>
    /// The parts that are not as in the index.
    var parts: [String: WrittenPart]
}

extension Head.Part {
    /// The part as it is written for a reader who has nothing but its version vector's segment.
    func written(over contextBase: VersionVector) -> WrittenPart {
        WrittenPart(
            digest: digest, vectorSegment: vectorSegment, vector: vector.subtracting(contextBase),
            form: .whole(base), tail: tail, removed: removed)
    }

    /// The part as it is written over an index's; `nil` if it is not a later form of that.
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

    /// What the tail has, except in buckets that have another segment.
    fileprivate func changes(outside replaced: [Int: Bits128], _ wrapping: Wrapping) -> ([Key: Entry], Set<Key>) {
        if replaced.isEmpty { return (tail, removed) }
        func isKept(_ key: Key) -> Bool {
            base.place(ofHash: wrapping.hash(of: key)).map { replaced[$0] == nil } ?? true
        }
        return (tail.filter { isKept($0.key) }, removed.filter(isKept))
    }
}

extension WrittenPart {
    /// The part that a reader gets who has what it was written over; `nil` if it makes no sense over that.
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
