// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import StoreEngine
internal import SyncEngine

/// A head that is there.
struct FoundHead {
    let name: String
    let digest: Bits128
    let length: Int
    let head: Head
}

/// The heads that are there, one of each digest, and what is to be said of others.
struct FoundHeads {
    var heads: [FoundHead] = []
    var problems: [String] = []

    func named(_ origin: Origin) -> FoundHead? {
        heads.first { $0.name == origin.description }
    }
}

extension BlobBackend {
    /// More devices than anybody has. What is beyond is not read.
    private static var mostHeads: Int { 4096 }
    /// All heads together may have so many bytes: they are held in memory, and whoever may write to the place may
    /// put heads there.
    private static var mostBytes: Int { 64 << 20 }
    /// Every so many pulls a version that a storage gives is not believed.
    private static var unbelievingPulls: Int { 20 }

    /// Whether this pull looks at what pulls otherwise take for granted.
    var isThorough: Bool { memory.pulls % Self.unbelievingPulls == 1 }

    /// Reads all heads of an account.
    func readHeads(of account: RemoteAccount) async throws(RemoteError) -> FoundHeads {
        var found = FoundHeads()
        var versions: [String: (version: String, digest: Bits128)] = [:]
        var bytes = 0
        for listing in try await listHeads(&found.problems) {
            guard bytes < Self.mostBytes else {
                found.problems.append("The heads in the folder h are too large together; some were not read.")
                break
            }
            guard let (head, version) = try await readHead(listing, &found.problems) else { continue }
            bytes += head.length
            if let version { versions[listing.name] = (version, head.digest) }
            guard account.isNamed(head.head.account.description) else {
                found.problems.append("The file h/\(head.head.origin) belongs to another account and is passed over.")
                continue
            }
            // A copy that some sync tool made of a version that is there as well.
            if !found.heads.contains(where: { $0.digest == head.digest }) { found.heads.append(head) }
        }
        memory.versions = versions
        memory.heads = Dictionary(found.heads.map { ($0.digest, $0.head) }) { head, _ in head }
        return found
    }

    /// Plain names first, so that a copy of a head is found to be one.
    private func listHeads(_ problems: inout [String]) async throws(RemoteError) -> [BlobListing] {
        let names = try await storage.list(BlobName.heads)
            .filter { BlobName.origin(inHeadName: $0.name) != nil }
            .sorted { ($0.name.utf8.count, $0.name) < ($1.name.utf8.count, $1.name) }
        if names.count > Self.mostHeads { problems.append("The folder h holds too many files; some were not read.") }
        return Array(names.prefix(Self.mostHeads))
    }

    private func readHead(
        _ listing: BlobListing,
        _ problems: inout [String]
    ) async throws(RemoteError) -> (FoundHead, version: String?)? {
        let known = isThorough ? nil : memory.versions[listing.name]
        let isPlain = listing.name.utf8.count == 16
        let name = "\(BlobName.heads)/\(listing.name)"
        switch try await storage.get(name, limit: Head.limit, unless: known?.version) {
        case .absent:
            return nil
        case .unchanged:
            guard let known, let head = memory.heads[known.digest] else { return nil }
            // Its length only matters where it is our own, and that is always read again by a push.
            return (FoundHead(name: listing.name, digest: known.digest, length: 0, head: head), known.version)
        case .unreadable(let clause):
            if isPlain { problems.append("The file h/\(listing.name) \(clause).") }
            return nil
        case .content(let bytes, let version):
            guard let head = try decodeHead(bytes, named: listing.name, &problems) else { return nil }
            return (head, version)
        }
    }

    private func decodeHead(
        _ bytes: [UInt8],
        named name: String,
        _ problems: inout [String]
    ) throws(RemoteError) -> FoundHead? {
        let digest = Head.digest(of: bytes)
        do throws(BlobFlaw) {
            let head = try Head(decoding: bytes)
            return FoundHead(name: name, digest: digest, length: bytes.count, head: head)
        } catch {
            switch error {
            case .tooNew: throw RemoteError.tooNew
            case .foreign where name.utf8.count != 16: break
            case .foreign: problems.append("The file h/\(name) is no head, or has not arrived whole.")
            case .damaged(let clause): problems.append("The file h/\(name.prefix(16)) is damaged: \(clause).")
            }
            return nil
        }
    }

    /// The head under an origin's name, if there is one.
    func readHead(of origin: Origin) async throws(RemoteError) -> FoundHead? {
        let content = try await storage.get(BlobName.head(origin), limit: Head.limit, unless: nil)
        guard case .content(let bytes, _) = content else { return nil }
        var problems: [String] = []
        return try decodeHead(bytes, named: origin.description, &problems)
    }

    /// The names of the segments that are there.
    func listSegments() async throws(RemoteError) -> Set<Bits128> {
        Set(try await storage.list(BlobName.segments).compactMap { Bits128($0.name) })
    }

    /// Reads a segment.
    func readSegment(_ name: Bits128) async throws(RemoteError) -> SegmentContent {
        switch try await storage.get(BlobName.segment(name), limit: Segment.limit, unless: nil) {
        case .absent, .unchanged: return .absent
        case .unreadable(let clause): return .damaged("The file s/\(name) \(clause).")
        case .content(let bytes, _):
            guard Bits128(digestOf: bytes) == name else { return .damaged("The file s/\(name) is damaged.") }
            memory.goodSegments.insert(name)
            return .bytes(bytes)
        }
    }

    /// Reads the entries of a part's base.
    func readBase(of part: Head.Part, store: String) async throws(RemoteError) -> BaseContent {
        var entries: [Key: Entry] = [:]
        var size = 0
        for (bucket, name) in part.segments.enumerated() where name != .zero {
            let bytes: [UInt8]
            switch try await readSegment(name) {
            case .absent: return .lacking(nil)
            case .damaged(let sentence): return .lacking(sentence)
            case .bytes(let content): bytes = content
            }
            size += bytes.count
            let segment: Segment
            do throws(BlobFlaw) { segment = try Segment(decoding: bytes) } catch {
                if error == .tooNew { throw RemoteError.tooNew }
                return .senseless("The file s/\(name) makes no sense.")
            }
            guard segment.store == store, segment.bucketCount == part.segments.count, segment.bucket == bucket else {
                return .senseless("The file s/\(name) is not of the store \(store).")
            }
            entries.merge(segment.entries) { $1 }
            guard entries.count <= EntryLimits.entries, size <= Segment.limit else {
                return .senseless(tooLarge(store))
            }
        }
        return .entries(entries)
    }

    /// Reads a part's state.
    func readState(of part: Head.Part, store: String) async throws(RemoteError) -> PartContent {
        let base: [Key: Entry]
        switch try await readBase(of: part, store: store) {
        case .lacking(let sentence): return .lacking(sentence)
        case .senseless(let sentence): return .senseless(sentence)
        case .entries(let entries): base = entries
        }
        let state = part.state(over: base)
        let digests = StateDigests(of: state, store: store)
        guard digests.state == part.digest else {
            return .senseless("What a device published of the store \(store) is not what it says it is.")
        }
        guard state.entries.count <= EntryLimits.entries, digests.totalSize <= EntryLimits.storeBytes else {
            return .senseless(tooLarge(store))
        }
        return .state(state)
    }

    private func tooLarge(_ store: String) -> String {
        "The store \(store) has grown larger than what is synchronised."
    }
}

/// What is under a segment's name.
enum SegmentContent {
    case absent
    case damaged(String)
    case bytes([UInt8])
}

/// What became of reading the segments of a part.
enum BaseContent {
    case entries([Key: Entry])
    /// Not arrived, or not whole; it may still come. With a sentence where there is something to say.
    case lacking(String?)
    /// It is as it was written, and it is wrong.
    case senseless(String)
}

/// What became of reading a part.
enum PartContent {
    case state(StoreState)
    /// Not arrived, or not whole; it may still come.
    case lacking(String?)
    /// It is as it was written, and it is wrong.
    case senseless(String)
}
