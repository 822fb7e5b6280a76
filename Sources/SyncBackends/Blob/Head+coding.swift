// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import StoreEngine
internal import SyncEngine

extension Head {
    private static let endMark = Array("end\n".utf8)
    private static let longestPadding = 16
    private static let longestName = 255

    /// The bytes, of another length than those of the head before it.
    func encoded(unlikeLength previous: Int?) -> [UInt8] {
        let table = OriginTable(parts.values.lazy.flatMap(\.origins))
        var encoder = Envelope.begin(Envelope.head)
        encoder.bits128(account)
        encoder.fixed64(origin.bits)
        encoder.varint(sequence)
        encoder.varint(time)
        encoder.data(Self.shortened(device.identifier))
        encoder.data(Self.shortened(device.name))
        encoder.originTable(table)
        encoder.count(parts.count)
        for (identifier, part) in parts.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
            encoder.data(Array(identifier.utf8))
            encoder.part(part, table)
        }
        let length = encoder.bytes.count + 1 + Self.endMark.count + Envelope.sumBytes
        var padding = Int(sequence % UInt64(Self.longestPadding))
        if length + padding == previous { padding = Self.longestPadding }
        encoder.data([UInt8](repeating: 0, count: padding))
        encoder.raw(Self.endMark)
        return Envelope.seal(encoder)
    }

    /// What names a head: the first half of its sum.
    static func digest(of bytes: [UInt8]) -> Bits128 {
        Bits128(prefixOf: Array(bytes.suffix(Envelope.sumBytes)))
    }

    init(decoding bytes: [UInt8]) throws(BlobFlaw) {
        var decoder = try Envelope.open(bytes, Envelope.head)
        self = try BlobFlaw.reading { () throws(CanonicalDecodingError) in
            try Head(&decoder)
        }
    }

    private init(_ decoder: inout CanonicalDecoder) throws(CanonicalDecodingError) {
        account = try decoder.bits128()
        origin = Origin(bits: try decoder.fixed64())
        sequence = try decoder.varint()
        time = try decoder.varint()
        device = RemoteDevice(identifier: try decoder.name(), name: try decoder.name())
        let origins = try decoder.originTable()
        parts = [:]
        var last: String?
        for _ in 0..<(try decoder.count(elementBytes: 20)) {
            let start = decoder.offset
            let identifier = try decoder.storeIdentifier()
            if let last, !last.utf8.lexicographicallyPrecedes(identifier.utf8) {
                throw decoder.failure("stores are out of order", at: start)
            }
            parts[identifier] = try decoder.part(origins)
            last = identifier
        }
        try decoder.padding(atMost: Self.longestPadding)
        guard try decoder.raw(Self.endMark.count) == Self.endMark else { throw decoder.failure("it has no end") }
        try decoder.finish()
    }

    /// A name of a bearable length, cut between characters.
    private static func shortened(_ name: String) -> [UInt8] {
        var name = name
        while name.utf8.count > longestName { name.removeLast() }
        return Array(name.utf8)
    }
}

extension Head.Part {
    /// The origins that it names.
    var origins: [Origin] { Array(context.seen.keys) + tail.values.map(\.stamp.origin) }
}

extension CanonicalEncoder {
    fileprivate mutating func part(_ part: Head.Part, _ table: OriginTable) {
        bits128(part.digest)
        context(part.context, table)
        byte(UInt8(part.segments.count))
        for segment in part.segments { bits128(segment) }
        entries(part.tail, table)
        count(part.removed.count)
        for key in part.removed { self.key(key) }
    }
}

extension CanonicalDecoder {
    fileprivate mutating func part(_ origins: [Origin]) throws(CanonicalDecodingError) -> Head.Part {
        let digest = try bits128()
        let context = try context(origins)
        let start = offset
        let bucketCount = Int(try byte())
        guard Buckets.counts.contains(bucketCount) else { throw failure("no base has so many buckets", at: start) }
        var segments: [Bits128] = []
        for _ in 0..<bucketCount { segments.append(try bits128()) }
        let tail = try entries(origins)
        let removed = try keys()
        guard removed.allSatisfy({ tail[$0] == nil }), bucketCount > 0 || removed.isEmpty else {
            throw failure("a key is removed that is not in the base")
        }
        return Head.Part(digest: digest, context: context, segments: segments, tail: tail, removed: removed)
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
