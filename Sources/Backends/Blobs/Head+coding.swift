// SPDX-License-Identifier: Apache-2.0

package import BackendSupport
internal import PropertyList
internal import Replication

/// Encodes and decodes an index: the parts of all stores as they were when it was written.
package enum Index {
    /// The maximum length, in bytes.
    static let limit = 16 << 20

    package static func encode(_ parts: [String: WrittenPart]) -> [UInt8] {
        let table = OriginTable(parts.values.lazy.flatMap(\.origins))
        var encoder = Envelope.begin(Envelope.index)
        encoder.originTable(table)
        encoder.parts(parts, table)
        return encoder.bytes
    }

    package static func decode(
        _ bytes: [UInt8], in memory: DecodingMemory? = nil
    ) throws(BlobFlaw) -> [String: WrittenPart] {
        var decoder = try Envelope.openNamed(bytes, Envelope.index, in: memory)
        return try BlobFlaw.reading { () throws(CanonicalDecodingError) in
            let parts = try decoder.parts(try decoder.originTable(), isIndex: true)
            try decoder.finish()
            return parts
        }
    }
}

extension WrittenHead {
    private static let endMark = Array("end\n".utf8)
    private static let longestPadding = 16

    /// Returns the head's bytes, in another length than the previous head's.
    package func encoded(unlikeLength previous: Int? = nil) -> [UInt8] {
        let table = OriginTable(parts.values.lazy.flatMap(\.origins))
        var encoder = Envelope.begin(Envelope.head)
        encoder.bits128(head.account)
        encoder.fixed64(head.origin.bits)
        encoder.varint(head.sequence)
        encoder.varint(head.time)
        encoder.data(head.device.identifier.shortened)
        encoder.data(head.device.name.shortened)
        encoder.segment(head.index)
        encoder.originTable(table)
        encoder.count(absent.count)
        for store in absent.sorted() { encoder.data(Array(store.utf8)) }
        encoder.parts(parts, table)
        let length = encoder.bytes.count + 1 + Self.endMark.count + Envelope.sumBytes
        var padding = Int(head.sequence % UInt64(Self.longestPadding))
        if length + padding == previous { padding = Self.longestPadding }
        encoder.data([UInt8](repeating: 0, count: padding))
        encoder.raw(Self.endMark)
        return Envelope.seal(encoder)
    }

    package init(decoding bytes: [UInt8], in memory: DecodingMemory? = nil) throws(BlobFlaw) {
        var decoder = try Envelope.open(bytes, Envelope.head, in: memory)
        self = try BlobFlaw.reading { () throws(CanonicalDecodingError) in try WrittenHead(&decoder) }
    }

    private init(_ decoder: inout CanonicalDecoder) throws(CanonicalDecodingError) {
        head = Head(
            account: try decoder.bits128(), origin: Origin(bits: try decoder.fixed64()),
            sequence: try decoder.varint(), time: try decoder.varint(),
            device: RemoteDevice(identifier: try decoder.name(), name: try decoder.name()),
            index: try decoder.segment(), parts: [:])
        let origins = try decoder.originTable()
        absent = []
        var last: String?
        for _ in 0..<(try decoder.count(elementBytes: 2, memory: 64)) {
            last = try decoder.storeIdentifier(after: last)
            if let last { absent.insert(last) }
        }
        parts = try decoder.parts(origins, isIndex: head.index == .zero)
        guard absent.isDisjoint(with: parts.keys), head.index != .zero || absent.isEmpty else {
            throw decoder.failure("a store is both present and absent")
        }
        try decoder.padding(atMost: Self.longestPadding)
        guard try decoder.raw(Self.endMark.count) == Self.endMark else { throw decoder.failure("it has no end") }
        try decoder.finish()
    }
}

extension Head {
    /// Returns a head's digest, which is the first half of its sum.
    static func digest(of bytes: [UInt8]) -> Bits128 {
        Bits128(prefixOf: Array(bytes.suffix(Envelope.sumBytes)))
    }
}

extension String {
    /// At most 255 bytes of the text, cut between characters.
    fileprivate var shortened: [UInt8] {
        var name = self
        while name.utf8.count > 255 { name.removeLast() }
        return Array(name.utf8)
    }
}

extension WrittenPart {
    /// The origins that the part names.
    fileprivate var origins: [Origin] { vector.dots.map(\.origin) + tail.values.map(\.stamp.origin) }
}

private enum PartForm {
    static let whole: UInt8 = 0
    static let over: UInt8 = 1
}

extension CanonicalEncoder {
    fileprivate mutating func parts(_ parts: [String: WrittenPart], _ table: OriginTable) {
        count(parts.count)
        for (identifier, part) in parts.sorted(by: { $0.key < $1.key }) {
            data(Array(identifier.utf8))
            self.part(part, table)
        }
    }

    private mutating func part(_ part: WrittenPart, _ table: OriginTable) {
        bits128(part.digest)
        switch part.form {
        case .whole(let base):
            byte(PartForm.whole)
            segment(part.vectorSegment)
            self.base(base)
        case .over(let replaced, let forgotten):
            byte(PartForm.over)
            count(replaced.count)
            for (place, name) in replaced.sorted(by: { $0.key < $1.key }) {
                count(place)
                bits128(name)
            }
            keys(forgotten)
        }
        vector(part.vector, table)
        entries(part.tail, table)
        keys(part.removed)
    }

    /// Writes a segment's name, or none for zero.
    fileprivate mutating func segment(_ name: Bits128) {
        count(name == .zero ? 0 : 16)
        if name != .zero { bits128(name) }
    }

    private mutating func keys(_ keys: Set<Key>) {
        count(keys.count)
        for key in keys.sorted() { self.key(key) }
    }
}

extension CanonicalDecoder {
    fileprivate mutating func parts(
        _ origins: [Origin], isIndex: Bool
    ) throws(CanonicalDecodingError) -> [String: WrittenPart] {
        var parts: [String: WrittenPart] = [:]
        var last: String?
        let start = offset
        let count = try count(elementBytes: 22, memory: 256)
        // A decoded part takes ten times as many bytes as an encoded one.
        guard count <= Head.mostStores else { throw failure("it names too many stores", at: start) }
        for _ in 0..<count {
            let identifier = try storeIdentifier(after: last)
            parts[identifier] = try part(origins, isIndex: isIndex)
            last = identifier
        }
        return parts
    }

    private mutating func part(_ origins: [Origin], isIndex: Bool) throws(CanonicalDecodingError) -> WrittenPart {
        let digest = try bits128()
        let start = offset
        var vectorSegment = Bits128.zero
        let form: WrittenPart.Form
        switch try byte() {
        case PartForm.whole:
            vectorSegment = try segment()
            form = .whole(try base())
        case PartForm.over where !isIndex:
            form = .over(replaced: try replacedSegments(), forgotten: Set(try keys()))
        default:
            throw failure("a part has no such form", at: start)
        }
        let vector = try vector(origins)
        let tail = try entries(origins)
        let removed = Set(try keys())
        guard removed.allSatisfy({ tail[$0] == nil }) else { throw failure("a key is both present and absent") }
        if case .whole(let base) = form, base.isEmpty, !removed.isEmpty {
            throw failure("a key is removed that is not in the base")
        }
        if case .over(_, let forgotten) = form,
            !forgotten.allSatisfy({ tail[$0] == nil && !removed.contains($0) })
        {
            throw failure("a key is both present and absent")
        }
        return WrittenPart(
            digest: digest, vectorSegment: vectorSegment, vector: vector, form: form, tail: tail, removed: removed)
    }

    private mutating func replacedSegments() throws(CanonicalDecodingError) -> [Int: Bits128] {
        var replaced: [Int: Bits128] = [:]
        var next: UInt64 = 0
        for _ in 0..<(try count(elementBytes: 17, memory: 48)) {
            let start = offset
            let place = try varint()
            guard place >= next, place < 1 << Bucket.mostDepth else {
                throw failure("buckets are out of order", at: start)
            }
            replaced[Int(place)] = try bits128()
            next = place + 1
        }
        return replaced
    }

    /// Reads a segment's name; zero if there is none.
    fileprivate mutating func segment() throws(CanonicalDecodingError) -> Bits128 {
        let start = offset
        switch try byte() {
        case 0: return .zero
        case 16:
            let name = try bits128()
            if name != .zero { return name }
            throw failure("a segment has no such name", at: start)
        default: throw failure("a segment has no such name", at: start)
        }
    }

    fileprivate mutating func storeIdentifier(after last: String?) throws(CanonicalDecodingError) -> String {
        let start = offset
        let identifier = try storeIdentifier()
        if let last, last >= identifier { throw failure("stores are out of order", at: start) }
        return identifier
    }

    fileprivate mutating func name() throws(CanonicalDecodingError) -> String {
        let start = offset
        let bytes = try data()
        guard bytes.count <= 255 else { throw failure("a name is too long", at: start) }
        guard let name = String(validating: bytes, as: UTF8.self) else {
            throw CanonicalDecodingError(.invalidUTF8, offset: start)
        }
        return name
    }

    fileprivate mutating func padding(atMost limit: Int) throws(CanonicalDecodingError) {
        let start = offset
        let padding = try data()
        guard padding.count <= limit, padding.allSatisfy({ $0 == 0 }) else { throw failure("no padding", at: start) }
    }
}
