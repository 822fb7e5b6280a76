// SPDX-License-Identifier: Apache-2.0

// What devices of the core form publish: the heads and segments of docs/remote-format.md, without their encoding.

internal import PropertyList
internal import Replication
internal import StoreEngine

/// An object of a remote.
enum CoreBlob {
    case marker
    case head(CoreHead)
    case segment(CoreSegment)
    case torn
}

/// One bucket of a store's entries, named by its content.
final class CoreSegment {
    let name: Bits128
    let entries: [Key: Entry]
    private(set) lazy var digests = entries.mapValues(Digest.of)

    init(_ name: Bits128, _ entries: [Key: Entry]) { (self.name, self.entries) = (name, entries) }

    /// The name of a segment in a remote.
    static func path(of name: Bits128) -> String { "s/\(name.low)" }
    static func name(of path: some StringProtocol) -> Bits128? { UInt64(path).map { Bits128(high: 0, low: $0) } }
}

/// Makes segments. Each entry counts as one byte.
struct CoreSegmentWriter: SegmentWriter {
    func hash(of key: Key) -> Int {
        Int(key.string.utf8.reduce(0x811C_9DC5 as UInt64) { ($0 ^ UInt64($1)) &* 0x0100_0193 } >> 8 & 0xFFFF)
    }

    func write(
        _ entries: [Key: Entry], in bucket: Bucket, of store: String
    ) -> (CoreSegment, name: Bits128, bytes: Int) {
        let place = store.utf8.reduce(UInt64(bucket.depth << 16 | bucket.prefix)) { $0 &* 31 &+ UInt64($1) }
        let name = Bits128(high: 0, low: Digest.of(Digest.of(entries), place))
        return (CoreSegment(name, entries), name, entries.count)
    }

    func write(_ vector: VersionVector) -> (CoreSegment, name: Bits128) { (CoreSegment(.zero, [:]), .zero) }
}

extension DraftLimits {
    /// Limits for entries that count as one byte each. Version vectors stay in heads.
    static let core = {
        var limits = DraftLimits(stores: 1, otherTails: 0)
        (limits.inlineBytes, limits.tailBytes, limits.leastTail) = (1, 2, 2)
        (limits.bucketBytes, limits.mergedBytes, limits.contextOrigins) = (3, 1, 1 << 20)
        return limits
    }()
}

/// One device's publication.
final class CoreHead {
    let identity: HeadIdentity
    let parts: [StatePart]
    private(set) lazy var segments = Set(parts.flatMap(\.segmentNames))
    private lazy var states = Dictionary(
        uniqueKeysWithValues: parts.enumerated().map { store, part in
            (Names.stores[store], HeadState(digest: part.digest, vector: part.vector))
        })

    var origin: Origin { identity.origin }
    var digest: Bits128 { identity.digest }

    init(origin: Origin, sequence: UInt64, parts: [StatePart]) {
        self.parts = parts
        let digest = parts.reduce(Digest.of(origin.bits, sequence)) { Digest.of($0, $1.digest.low) }
        identity = HeadIdentity(origin: origin, digest: Bits128(high: 0, low: digest), sequence: sequence)
    }

    /// The head as `Sources/Replication/Heads` sees it, under its own name.
    private(set) lazy var seen = seen(as: origin.description)

    func seen(under name: Substring) -> SeenHead { name == seen.name ? seen : seen(as: String(name)) }

    private func seen(as name: String) -> SeenHead {
        SeenHead(identity, under: name, isWhole: true, states: states, segments: segments)
    }

    static func name(of origin: Origin) -> String { "h/\(origin)" }
}

extension StatePart {
    var summary: String {
        let base = base.isEmpty ? "" : "over \(base.names.map(\.low)) without \(removed.map(\.string).sorted()): "
        return base + StoreState(entries: tail, vector: vector).summary
    }
}

/// Hashes: equal input gives equal numbers in every process.
enum Digest {
    static func of(_ numbers: UInt64...) -> UInt64 {
        var hash: UInt64 = 0x243F_6A88_85A3_08D3
        for number in numbers {
            hash = (hash ^ number) &* 0x9E37_79B9_7F4A_7C15
            hash ^= hash >> 32
        }
        return hash
    }

    static func of(_ entry: Entry) -> Bits128 {
        let value = entry.value?.reduce(1) { $0 &* 31 &+ UInt64($1) } ?? 0
        let low = of(entry.stamp.origin.bits, entry.n, entry.stamp.wall, UInt64(entry.stamp.counter), value)
        return Bits128(high: 0, low: low)
    }

    static func of(_ entries: [Key: Entry]) -> UInt64 { entries.values.reduce(0) { $0 &+ of($1).low } }
}

extension StateDigests {
    /// Computes the digests of a state. Each entry counts as one byte.
    init(_ state: StoreState) {
        let entries = state.entries.mapValues(Digest.of)
        let whole = entries.values.reduce(0) { $0 &+ $1.low }
        let digest = state.vector.dots.reduce(whole) { $0 &+ Digest.of($1.origin.bits, $1.n, 1) }
        self.init(
            entries: entries, sizes: state.entries.mapValues { _ in 1 }, state: Bits128(high: 0, low: digest))
    }
}

/// What a device of the core form stores of one store in one account.
struct CoreReplica: Sendable {
    var state = StoreState()
    /// Keys that were written here, with the sequence numbers of these writes.
    var own: [Key: UInt64] = [:]
    var sequence: UInt64 = 0
    var published: UInt64 = 0
    var isDownloaded = false

    var lastOwn: UInt64 = 0

    var isPending: Bool { lastOwn > published && own.values.contains { $0 > published } }
}
