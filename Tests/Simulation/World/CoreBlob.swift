// SPDX-License-Identifier: Apache-2.0

// What devices of the core publish: heads and segments as docs/remote-format.md has them, without their bytes.

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

/// One store's entries, under a name that says what they are.
final class CoreSegment {
    let name: Name
    let entries: [Key: Entry]

    struct Name: Hashable, Comparable {
        let digest: UInt64
        let string: String

        init(_ digest: UInt64) { (self.digest, string) = (digest, "s/\(digest)") }

        static func == (a: Self, b: Self) -> Bool { a.digest == b.digest }
        static func < (a: Self, b: Self) -> Bool { a.digest < b.digest }
        func hash(into hasher: inout Hasher) { hasher.combine(digest) }
    }

    init(_ name: Name, _ entries: [Key: Entry]) { (self.name, self.entries) = (name, entries) }
}

/// One device's publication.
final class CoreHead {
    let origin: Origin
    let sequence: UInt64
    let parts: [Part]
    let digest: Bits128

    var identity: HeadIdentity { HeadIdentity(origin: origin, digest: digest, sequence: sequence) }

    /// One store's state: what is in the segment, without what is removed, and what is in the tail.
    struct Part {
        var digest: Bits128
        var vector: VersionVector
        var segment: CoreSegment.Name?
        var tail: [Key: Entry]
        var removed: [Key]

        func state(over base: [Key: Entry]) -> StoreState {
            var entries = base
            for key in removed { entries[key] = nil }
            entries.merge(tail) { $1 }
            return StoreState(entries: entries, vector: vector)
        }

        var summary: String {
            let base = segment.map { "over \($0.string) without \(removed.map(\.string)): " } ?? ""
            return base + StoreState(entries: tail, vector: vector).summary
        }
    }

    init(origin: Origin, sequence: UInt64, parts: [Part]) {
        (self.origin, self.sequence, self.parts) = (origin, sequence, parts)
        digest = Bits128(high: 0, low: parts.reduce(Digest.of(origin.bits, sequence)) { Digest.of($0, $1.digest.low) })
    }

    /// What decisions are made on.
    func seen(under name: String) -> SeenHead {
        let states = parts.enumerated().map { store, part in
            (Names.stores[store], HeadState(digest: part.digest, vector: part.vector))
        }
        return SeenHead(
            digest: digest, isCopy: name != Self.name(of: origin), isWhole: true,
            states: Dictionary(uniqueKeysWithValues: states))
    }

    static func name(of origin: Origin) -> String { "h/\(origin)" }
}

/// Numbers that are equal if what they are made of is.
enum Digest {
    static func of(_ numbers: UInt64...) -> UInt64 {
        var hash: UInt64 = 0x243F_6A88_85A3_08D3
        for number in numbers {
            hash = (hash ^ number) &* 0x9E37_79B9_7F4A_7C15
            hash ^= hash >> 32
        }
        return hash
    }

    static func of(_ entries: [Key: Entry]) -> UInt64 {
        entries.values.reduce(0) { sum, entry in
            let value = entry.value?.reduce(1) { $0 &* 31 &+ UInt64($1) } ?? 0
            return sum &+ of(entry.stamp.origin.bits, entry.n, entry.stamp.wall, UInt64(entry.stamp.counter), value)
        }
    }

    static func of(_ state: StoreState) -> Bits128 {
        Bits128(high: 0, low: state.vector.dots.reduce(of(state.entries)) { $0 &+ of($1.origin.bits, $1.n, 1) })
    }
}

/// What a device of the core holds on its disk of one store in one account.
struct CoreReplica: Sendable {
    var state = StoreState()
    /// Keys that were written here, and the sequences of these writes.
    var own: [Key: UInt64] = [:]
    var sequence: UInt64 = 0
    var published: UInt64 = 0
    var isDownloaded = false

    var lastOwn: UInt64 = 0

    var isPending: Bool { lastOwn > published && own.values.contains { $0 > published } }
}
