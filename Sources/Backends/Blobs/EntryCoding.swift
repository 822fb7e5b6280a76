// SPDX-License-Identifier: Apache-2.0

// Entries, version vectors and origins as bytes. Each origin is written once, in a table, and elsewhere as its position
// there. Everything is sorted, so that equal states have equal bytes whichever device writes them.

internal import BackendSupport
internal import PropertyList
internal import Replication

/// The origins that a blob names, sorted.
struct OriginTable {
    let origins: [Origin]
    private let positions: [Origin: Int]

    init(_ origins: some Sequence<Origin>) {
        self.origins = Set(origins).sorted()
        positions = Dictionary(uniqueKeysWithValues: zip(self.origins, self.origins.indices))
    }

    func position(of origin: Origin) -> Int { positions[origin] ?? 0 }
}

private enum Flag {
    static let provisional: UInt8 = 1
    static let value: UInt8 = 2
}

extension CanonicalEncoder {
    mutating func originTable(_ table: OriginTable) {
        count(table.origins.count)
        for origin in table.origins { fixed64(origin.bits) }
    }

    mutating func key(_ key: Key) {
        data(Array(key.string.utf8))
    }

    mutating func entry(_ key: Key, _ entry: Entry, _ table: OriginTable) {
        fields(of: entry, under: key) { $0.count(table.position(of: entry.stamp.origin)) }
    }

    mutating func entries(_ entries: [Key: Entry], _ table: OriginTable) {
        count(entries.count)
        for key in entries.keys.sorted() {
            if let entry = entries[key] { self.entry(key, entry, table) }
        }
    }

    mutating func vector(_ vector: VersionVector, _ table: OriginTable) {
        count(vector.dots.count)
        for dot in vector.dots {
            count(table.position(of: dot.origin))
            varint(dot.n)
        }
    }

    /// Writes an entry with its origin instead of a position in a table, to be hashed.
    mutating func freestandingEntry(_ key: Key, _ entry: Entry) {
        fields(of: entry, under: key) { $0.fixed64(entry.stamp.origin.bits) }
    }

    private mutating func fields(of entry: Entry, under key: Key, origin: (inout Self) -> Void) {
        self.key(key)
        byte((entry.stamp.isProvisional ? Flag.provisional : 0) | (entry.value == nil ? 0 : Flag.value))
        varint(entry.stamp.wall)
        varint(UInt64(entry.stamp.counter))
        origin(&self)
        varint(entry.n)
        if let value = entry.value { data(value) }
    }
}

extension CanonicalDecoder {
    mutating func originTable() throws(CanonicalDecodingError) -> [Origin] {
        var origins: [Origin] = []
        for _ in 0..<(try count(elementBytes: 8, memory: 16)) {
            let start = offset
            let origin = Origin(bits: try fixed64())
            if let last = origins.last, last >= origin { throw failure("origins are out of order", at: start) }
            origins.append(origin)
        }
        return origins
    }

    mutating func key() throws(CanonicalDecodingError) -> Key {
        let start = offset
        let bytes = try data()
        guard bytes.count <= EntryLimits.keyBytes else { throw failure("a key is too long", at: start) }
        guard let string = String(validating: bytes, as: UTF8.self) else {
            throw CanonicalDecodingError(.invalidUTF8, offset: start)
        }
        return Key(unchecked: string)
    }

    /// Reads sorted keys.
    mutating func keys() throws(CanonicalDecodingError) -> [Key] {
        var keys: [Key] = []
        for _ in 0..<(try count(memory: 64)) {
            let start = offset
            let key = try key()
            if let last = keys.last, last >= key { throw failure("keys are out of order", at: start) }
            keys.append(key)
        }
        return keys
    }

    mutating func entries(_ origins: [Origin]) throws(CanonicalDecodingError) -> [Key: Entry] {
        let start = offset
        let count = try count(elementBytes: EntryLimits.shortestEntry, memory: EntryLimits.memory)
        guard count <= StoreBounds.entries else { throw failure("there are too many entries", at: start) }
        var entries: [Key: Entry] = [:]
        var last: Key?
        for _ in 0..<count {
            let start = offset
            let (key, entry) = try entry(origins)
            if let last, last >= key { throw failure("keys are out of order", at: start) }
            entries[key] = entry
            last = key
        }
        return entries
    }

    mutating func vector(_ origins: [Origin]) throws(CanonicalDecodingError) -> VersionVector {
        var vector = VersionVector()
        var last: Origin?
        for _ in 0..<(try count(elementBytes: 2, memory: 16)) {
            let start = offset
            let origin = try origin(in: origins)
            if let last, last >= origin { throw failure("a version vector is out of order", at: start) }
            vector.insert(Dot(origin: origin, n: try dotNumber()))
            last = origin
        }
        return vector
    }

    private mutating func entry(_ origins: [Origin]) throws(CanonicalDecodingError) -> (Key, Entry) {
        let key = try key()
        let start = offset
        let flags = try byte()
        guard flags & ~(Flag.provisional | Flag.value) == 0 else { throw failure("unknown flags", at: start) }
        let wall = try varint()
        guard wall < Stamp.wallLimit else { throw failure("a stamp is beyond every clock") }
        guard let counter = UInt16(exactly: try varint()) else { throw failure("a counter is too large") }
        let origin = try origin(in: origins)
        let n = try dotNumber()
        let stamp = Stamp(
            isProvisional: flags & Flag.provisional != 0,
            wall: wall,
            counter: counter,
            origin: origin
        )
        return (key, Entry(stamp: stamp, n: n, value: flags & Flag.value != 0 ? try data() : nil))
    }

    private mutating func origin(in origins: [Origin]) throws(CanonicalDecodingError) -> Origin {
        let start = offset
        let position = try varint()
        guard position < UInt64(origins.count) else { throw failure("no such origin", at: start) }
        return origins[Int(position)]
    }

    private mutating func dotNumber() throws(CanonicalDecodingError) -> UInt64 {
        let start = offset
        let n = try varint()
        guard n >= 1, n <= EntryLimits.n else { throw failure("a write has no such number", at: start) }
        return n
    }
}

extension StateDigests {
    /// Computes the digests of a state.
    init(of state: StoreState, store identifier: String) {
        var (entries, sizes): ([Key: Bits128], [Key: Int]) = ([:], [:])
        var whole = CanonicalEncoder()
        whole.data(Array(identifier.utf8))
        whole.count(state.vector.dots.count)
        for dot in state.vector.dots {
            whole.fixed64(dot.origin.bits)
            whole.varint(dot.n)
        }
        whole.count(state.entries.count)
        for key in state.entries.keys.sorted() {
            guard let entry = state.entries[key] else { continue }
            var record = CanonicalEncoder()
            record.freestandingEntry(key, entry)
            let digest = Bits128(digestOf: record.bytes)
            entries[key] = digest
            sizes[key] = record.bytes.count
            whole.bits128(digest)
        }
        self.init(entries: entries, sizes: sizes, state: Bits128(digestOf: whole.bytes))
    }
}
