// SPDX-License-Identifier: Apache-2.0

// The rows of an account in a cluster. P is the prefix of the address:
//
//     P/account                   the account's identifiers, and its last transactions
//     P/entry/STORE/KEY           an entry of a store
//     P/context/STORE/ORIGIN      how many of an origin's writes were joined to a store
//     P/store/STORE               written with every change of the store
//     P/gone/STORE                written whenever entry rows of the store are deleted
//     P/device/ORIGIN             the device that publishes under an origin
//     P/part/STORE/ORIGIN.N/I     a part of a value that is too large for one row
//
// An encrypted account has blobs instead (EtcdStorage):
//
//     P/blob/a/NAME, h/, s/       a blob: a marker or note, a head, a segment
//     P/blob/s/NAME/I             a part of a segment that is too large for one row
//     P/blob/changed              random, written with every marker, note and head
//
// Then P/account is a fence, at which readers of an unencrypted account's rows stop.
//
// Every transaction that changes rows replaces P/account, on condition that it is as the sender has seen it. So
// transactions have one order, and no device changes what it has not seen.

internal import BackendSupport
internal import PropertyList
internal import RemoteAddress
internal import Replication

/// The keys of an account's rows.
struct EtcdLayout {
    private let prefix: [UInt8]

    init(_ prefix: [UInt8]) { self.prefix = prefix }

    var account: [UInt8] { path("account") }
    var devices: [UInt8] { path("device/") }
    var stores: [UInt8] { path("store/") }
    var gone: [UInt8] { path("gone/") }
    var parts: [UInt8] { path("part/") }

    func device(_ origin: Origin) -> [UInt8] { path("device/\(origin)") }
    func store(_ store: String) -> [UInt8] { stores + Self.name(store) }
    func gone(_ store: String) -> [UInt8] { gone + Self.name(store) }
    func entries(_ store: String) -> [UInt8] { path("entry/") + Self.name(store) + [Self.slash] }
    func entry(_ store: String, _ key: Key) -> [UInt8] { entries(store) + Array(key.string.utf8) }
    func vectors(_ store: String) -> [UInt8] { path("context/") + Self.name(store) + [Self.slash] }
    func vector(_ store: String, _ origin: Origin) -> [UInt8] { vectors(store) + Array(origin.description.utf8) }
    func parts(_ store: String, _ dot: Dot) -> [UInt8] {
        parts + Self.name(store) + Array("/\(dot.origin).\(dot.n)/".utf8)
    }
    func part(_ store: String, _ dot: Dot, _ number: Int) -> [UInt8] { parts(store, dot) + Self.digits(number) }

    /// Formats a number with six digits, so that parts are in order.
    private static func digits(_ number: Int) -> [UInt8] { Array(String(1_000_000 + number).dropFirst().utf8) }

    var blobs: [UInt8] { path("blob/") }
    var changed: [UInt8] { path("blob/changed") }

    func blobs(_ folder: String) -> [UInt8] { path("blob/\(folder)/") }
    func blob(_ name: String) -> [UInt8] { path("blob/\(name)") }
    func parts(ofBlob name: String) -> [UInt8] { path("blob/\(name)/") }
    func part(_ number: Int, ofBlob name: String) -> [UInt8] { parts(ofBlob: name) + Self.digits(number) }

    /// The folders of an unencrypted account, besides its own row, in the order in which they can be removed: entries
    /// without contexts are merely entries, but contexts without their entries would say that these were deleted.
    var rows: [[UInt8]] { ["context/", "store/", "gone/", "entry/", "part/", "device/"].map(path) }

    private func path(_ end: String) -> [UInt8] { prefix + Array("/\(end)".utf8) }

    fileprivate static let slash = UInt8(ascii: "/")

    /// Escapes a store's identifier, which must not contain a slash in a row's key.
    private static func name(_ store: String) -> [UInt8] {
        Array(store.replacing("%", with: "%25").replacing("/", with: "%2F").utf8)
    }

    /// Returns the store of a row in a folder that has one row per store; `nil` if the row is elsewhere or malformed.
    func store(of row: EtcdRow, under folder: [UInt8]) -> String? {
        guard row.key.starts(with: folder) else { return nil }
        return PercentCoding.decode(String(decoding: row.key.dropFirst(folder.count), as: UTF8.self))
    }
}

extension EtcdLayout {
    /// Returns what the keys of all parts of an entry begin with.
    static func entry(ofPart row: EtcdRow) -> [UInt8] {
        Array(row.key[..<(row.key.lastIndex(of: slash).map { $0 + 1 } ?? 0)])
    }

    /// Returns the store of a part of a value; `nil` if the row is elsewhere or malformed.
    func storeOfPart(_ row: EtcdRow) -> String? {
        guard row.key.starts(with: parts) else { return nil }
        let name = row.key.dropFirst(parts.count).prefix { $0 != Self.slash }
        return PercentCoding.decode(String(decoding: name, as: UTF8.self))
    }
}

// MARK: - Rows

/// A row can't be decoded.
struct EtcdFlaw: Error {
    /// Whether a newer version wrote the row.
    var isTooNew = false
}

/// The row of an account: its identifiers, and a random number for each of the last transactions, newest first.
///
/// A device that has seen one of these numbers knows this history. A cluster that was restored from a backup lacks the
/// numbers of the transactions that it has lost.
struct EtcdAccount: Equatable {
    var identifiers: Set<Bits128>
    private(set) var tokens: [UInt64] = []

    private static let format: UInt8 = 1
    /// What replaces the row if the account is encrypted.
    static let fence: [UInt8] = [2]
    /// More identifiers than devices have ever created for an account at once.
    static let mostIdentifiers = 64

    init(_ identifiers: Set<Bits128>, token: UInt64) {
        self.identifiers = identifiers
        tokens = [token]
    }

    /// Adds the number of another transaction.
    mutating func add(_ token: UInt64, keeping most: Int) {
        tokens.insert(token, at: 0)
        tokens.removeLast(max(0, tokens.count - most))
    }

    init(decoding row: [UInt8]) throws(EtcdFlaw) {
        var decoder = CanonicalDecoder(row)
        identifiers = []
        do throws(CanonicalDecodingError) {
            guard try decoder.byte() == Self.format else { throw decoder.failure("of another version") }
            for _ in 0..<(try decoder.count(elementBytes: 16)) { identifiers.insert(try decoder.bits128()) }
            for _ in 0..<(try decoder.count(elementBytes: 8)) { tokens.append(try decoder.fixed64()) }
            try decoder.finish()
        } catch {
            throw EtcdFlaw(isTooNew: (row.first ?? 0) > Self.format)
        }
        guard !identifiers.isEmpty, !tokens.isEmpty else { throw EtcdFlaw() }
    }

    var encoded: [UInt8] {
        var encoder = CanonicalEncoder()
        encoder.byte(Self.format)
        encoder.count(identifiers.count)
        for identifier in identifiers.sorted() { encoder.bits128(identifier) }
        encoder.count(tokens.count)
        for token in tokens { encoder.fixed64(token) }
        return encoder.bytes
    }
}

/// The row of an origin: the device that publishes under it, and its last publication.
struct EtcdDevice: Equatable {
    let device: RemoteDevice
    /// A random number. A device that finds a number that it did not write has a clone.
    let publication: UInt64
    /// How often the device had begun to publish under the origin.
    let count: UInt64

    init(_ device: RemoteDevice, publication: UInt64, count: UInt64) {
        (self.device, self.publication, self.count) = (device, publication, count)
    }

    init(decoding row: [UInt8]) throws(EtcdFlaw) {
        var decoder = CanonicalDecoder(row)
        do throws(CanonicalDecodingError) {
            publication = try decoder.fixed64()
            count = try decoder.varint()
            device = RemoteDevice(identifier: try decoder.text().string, name: try decoder.text().string)
        } catch {
            throw EtcdFlaw()
        }
    }

    var encoded: [UInt8] {
        var encoder = CanonicalEncoder()
        encoder.fixed64(publication)
        encoder.varint(count)
        encoder.text(Text(device.identifier))
        encoder.text(Text(device.name))
        return encoder.bytes
    }
}

/// The row of an entry. A value that is too large for it has rows of its own.
struct EtcdEntry: Equatable {
    let entry: Entry
    /// The size in bytes of a value that has rows of its own; `nil` if it has none.
    let partedBytes: Int?

    /// More than any app may write, and less than etcd accepts in one request.
    static let mostBytes = 1_200_000
    static let partBytes = 500_000

    private enum Flag {
        static let provisional: UInt8 = 1
        static let value: UInt8 = 2
        static let parts: UInt8 = 4
    }

    init(_ entry: Entry) {
        self.entry = entry
        let count = entry.value?.count ?? 0
        partedBytes = count > Self.mostBytes ? count : nil
    }

    init(_ stamp: Stamp, n: UInt64, value: [UInt8]) {
        (entry, partedBytes) = (Entry(stamp: stamp, n: n, value: value), nil)
    }

    init(decoding row: [UInt8]) throws(EtcdFlaw) {
        var decoder = CanonicalDecoder(row)
        do throws(CanonicalDecodingError) {
            let flags = try decoder.byte()
            let wall = try decoder.varint()
            let counter = UInt16(exactly: try decoder.varint())
            let origin = Origin(bits: try decoder.fixed64())
            let n = try decoder.varint()
            guard flags < 8, flags != Flag.value | Flag.parts, let counter, wall < Stamp.wallLimit,
                (1...EntryLimits.n).contains(n)
            else {
                throw decoder.failure("no entry")
            }
            let stamp = Stamp(
                isProvisional: flags & Flag.provisional != 0, wall: wall, counter: counter, origin: origin)
            partedBytes = flags & Flag.parts != 0 ? Int(clamping: try decoder.varint()) : nil
            let value = flags & Flag.value != 0 ? try decoder.raw(decoder.remaining) : nil
            try decoder.finish()
            entry = Entry(stamp: stamp, n: n, value: value)
        } catch {
            throw EtcdFlaw()
        }
    }

    var encoded: [UInt8] {
        var encoder = CanonicalEncoder(capacity: (entry.value?.count ?? 0) + 32)
        let value = partedBytes == nil ? entry.value : nil
        encoder.byte(
            (entry.stamp.isProvisional ? Flag.provisional : 0) | (value == nil ? 0 : Flag.value)
                | (partedBytes == nil ? 0 : Flag.parts))
        encoder.varint(entry.stamp.wall)
        encoder.varint(UInt64(entry.stamp.counter))
        encoder.fixed64(entry.stamp.origin.bits)
        encoder.varint(entry.n)
        if let partedBytes { encoder.count(partedBytes) }
        if let value { encoder.raw(value) }
        return encoder.bytes
    }

    /// The parts of the value.
    var parts: [[UInt8]] {
        guard partedBytes != nil, let value = entry.value else { return [] }
        return stride(from: 0, to: value.count, by: Self.partBytes).map {
            Array(value[$0..<min($0 + Self.partBytes, value.count)])
        }
    }
}

/// Where a pull ended.
struct EtcdCursor: Equatable {
    /// The revision up to which all changes were joined.
    var revision: Int64
    /// The number of the newest transaction at that revision.
    var token: UInt64
    /// The stores that were not joined up to there. They are read as a whole.
    var missing: Set<String> = []
    /// Whether the cluster has lost data, and this device has yet to publish everything that it has.
    var needsRepublication = false
    /// The identifier of the cluster whose revision this is; 0 if it was not known.
    var cluster: UInt64 = 0

    private static let format: UInt8 = 1

    private enum Flag {
        static let owing: UInt8 = 1
        static let cluster: UInt8 = 2
    }

    init(revision: Int64, token: UInt64) { (self.revision, self.token) = (revision, token) }

    /// Decodes a cursor; `nil` if it can't be decoded, so that the next pull reads everything.
    init?(decoding bytes: [UInt8]) {
        var decoder = CanonicalDecoder(bytes)
        do throws(CanonicalDecodingError) {
            guard try decoder.byte() == Self.format else { return nil }
            let flags = try decoder.byte()
            needsRepublication = flags & Flag.owing != 0
            revision = Int64(clamping: try decoder.varint())
            guard EtcdRevision.range.contains(revision) else { return nil }
            token = try decoder.fixed64()
            for _ in 0..<(try decoder.count()) { missing.insert(try decoder.text().string) }
            if flags & Flag.cluster != 0 { cluster = try decoder.fixed64() }
            try decoder.finish()
        } catch {
            return nil
        }
    }

    var encoded: [UInt8] {
        var encoder = CanonicalEncoder()
        encoder.byte(Self.format)
        encoder.byte((needsRepublication ? Flag.owing : 0) | (cluster == 0 ? 0 : Flag.cluster))
        encoder.varint(UInt64(max(0, revision)))
        encoder.fixed64(token)
        encoder.count(missing.count)
        for store in missing.sorted() { encoder.text(Text(store)) }
        if cluster != 0 { encoder.fixed64(cluster) }
        return encoder.bytes
    }
}
