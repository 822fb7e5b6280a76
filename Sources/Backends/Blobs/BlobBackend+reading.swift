// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import PropertyList
internal import Replication
internal import Sealing

/// A head that is there.
struct FoundHead {
    let name: String
    let digest: Bits128
    let length: Int
    /// The storage's version of it, where there is such a thing.
    var version: String?
    /// With the parts that could be made out.
    var head: Head
    /// About how many bytes it takes in memory, as it was read.
    var footprint = 0
    /// All parts could be.
    var isWhole = true
    /// What is to be said about it.
    var problems: [String] = []

    var identity: HeadIdentity { HeadIdentity(origin: head.origin, digest: digest, sequence: head.sequence) }

    /// It lies under a name that is not its own, as some sync tool left it. What it names may have been replaced long
    /// ago and never come back, so nobody waits for it; if it does come it is read.
    var isCopy: Bool { name != head.origin.description }
}

/// The heads of an account that are there, one of each digest, and what is to be said of others.
struct FoundHeads {
    var heads: [FoundHead] = []
    var problems: [String] = []

    func named(_ origin: Origin) -> FoundHead? {
        heads.first { $0.name == origin.description }
    }

    init(_ found: [FoundHead], of account: RemoteAccount, problems: [String]) {
        self.problems = problems
        for head in found {
            guard account.isNamed(head.head.account.description) else {
                self.problems.append("The file h/\(head.head.origin) belongs to another account and is passed over.")
                continue
            }
            // A copy that some sync tool made of a version that is there as well.
            if heads.contains(where: { $0.digest == head.digest }) { continue }
            heads.append(head)
            self.problems += head.problems
        }
    }
}

extension BlobBackend {
    /// More devices than anybody has. What is beyond is not read.
    static var mostHeads: Int { 4096 }
    /// Every so many pulls a version that a storage gives is not believed.
    private static var unbelievingPulls: Int { 20 }

    /// Whether this pull looks at what pulls otherwise take for granted.
    var isThorough: Bool { memory.pulls % Self.unbelievingPulls == 1 }

    /// Looks at the heads that are there, and reads those of which the storage does not say that it has none but
    /// those that were read.
    /// - Returns: what is to be said about those that could not be.
    func readHeads(believing: Bool, as origin: Origin) async throws(RemoteError) -> [String] {
        var problems: [String] = []
        var found: [String: FoundHead] = [:]
        var bytes = 0
        let (listings, isAll) = try await listHeads(as: origin, &problems)
        if !isAll { problems.append("The folder h holds too many files; some were not read.") }
        for listing in listings {
            guard bytes < mostHeadBytes else {
                problems.append("The heads in the folder h are too large together; some were not read.")
                break
            }
            guard let head = try await readHead(listing, believing: believing, &problems) else { continue }
            bytes += max(head.length, head.footprint)
            found[listing.name] = head
            // Those of the last look are there until all are read.
            try share.hold { $0.kept = max($0.kept, bytes) }
        }
        memory.found = found
        try share.hold { $0.kept = bytes }
        memory.listed = Set(listings.map(\.name))
        memory.hasFoundAll = isAll && found.count == listings.count
        return problems
    }

    /// Plain names first, so that a copy of a head is found to be one.
    /// - Returns: what is to be read, and whether that is all there is.
    private func listHeads(
        as origin: Origin, _ problems: inout [String]
    ) async throws(RemoteError) -> ([BlobListing], isAll: Bool) {
        let all = try await storage.list(BlobName.heads).filter { BlobName.origin(inHeadName: $0.name) != nil }
        let listings = all.filter { !BlobName.hasControls($0.name) }
            .sorted { ($0.name.utf8.count, $0.name) < ($1.name.utf8.count, $1.name) }
        if listings.count < all.count {
            problems.append(
                "The folder h holds names with control characters, which nobody gives; they are passed over.")
        }
        if listings.count <= Self.mostHeads { return (listings, true) }
        // Strange names must not hide what was there before, nor this device's own head. They may not even be listed.
        let known = Set(memory.found.keys).union([origin.description])
        var versions: [String: String] = [:]
        for listing in listings where known.contains(listing.name) { versions[listing.name] = listing.version }
        let others = listings.filter { !known.contains($0.name) }.prefix(max(0, Self.mostHeads - known.count))
        return (known.sorted().map { BlobListing(name: $0, version: versions[$0]) } + others, false)
    }

    private func readHead(
        _ listing: BlobListing,
        believing: Bool,
        _ problems: inout [String]
    ) async throws(RemoteError) -> FoundHead? {
        let known = believing ? memory.found[listing.name] : nil
        if let known, known.isWhole, let version = known.version, version == listing.version { return known }
        let isPlain = listing.name.utf8.count == 16
        let name = "\(BlobName.heads)/\(listing.name)"
        let limit = try wrapping.headLimit
        switch try await storage.get(name, limit: limit, unless: known?.isWhole == true ? known?.version : nil) {
        case .absent:
            return nil
        case .unchanged:
            return known
        case .unreadable(let clause):
            if isPlain { problems.append("The file h/\(listing.name) \(clause).") }
            return nil
        case .content(let bytes, let version):
            var found = try await decodeHead(bytes, named: listing.name, &problems)
            found?.version = version
            return found
        }
    }

    private func decodeHead(
        _ bytes: [UInt8],
        named name: String,
        _ problems: inout [String]
    ) async throws(RemoteError) -> FoundHead? {
        let written: WrittenHead
        let wrapping = try wrapping
        do throws(BlobFlaw) { written = try wrapping.head(bytes) } catch {
            switch error {
            case .tooNew: throw RemoteError.tooNew
            case .otherKey where !protection.isWanted: throw RemoteError.keyNeeded
            // Of this account as it was before, or as it is going to be.
            case .otherKey where protection.passesOver(bytes): break
            case .otherKey:
                // The account may be under another key since.
                memory.account = nil
                problems.append("The file h/\(name.prefix(16)) is not under the account's key and is passed over.")
            case .tooOld: problems.append("The file h/\(name.prefix(16)) is of a format that is not read any more.")
            case .foreign where name.utf8.count != 16: break
            case .foreign: problems.append("The file h/\(name) is no head, or has not arrived whole.")
            case .damaged(let clause): problems.append("The file h/\(name.prefix(16)) is damaged: \(clause).")
            }
            return nil
        }
        var found = FoundHead(name: name, digest: Head.digest(of: bytes), length: bytes.count, head: written.head)
        // What another account's heads name is nobody's business, until a marker says that it is the same account.
        found.isWhole = accountIdentifiers.contains(written.head.account)
        if found.isWhole { try await makeOut(written, &found) }
        found.footprint = found.head.footprint
        return found
    }

    /// The head under an origin's name, if there is one.
    func readHead(of origin: Origin) async throws(RemoteError) -> FoundHead? {
        let content = try await storage.get(BlobName.head(origin), limit: try wrapping.headLimit, unless: nil)
        guard case .content(let bytes, _) = content else { return nil }
        var problems: [String] = []
        return try await decodeHead(bytes, named: origin.description, &problems)
    }

    /// The names in a folder, and whether these are all: a folder that holds more than ours ever do is not listed whole.
    func list(_ folder: String) async throws(RemoteError) -> ([BlobListing], isAll: Bool) {
        let listings = try await storage.list(folder)
        let isAll = listings.count < BlobName.mostListed
        if isAll { memory.fullFolders.remove(folder) } else { memory.fullFolders.insert(folder) }
        return (listings, isAll)
    }

    /// The names of the segments that are there.
    func listSegments() async throws(RemoteError) -> Set<Bits128> {
        let (listings, isAll) = try await list(BlobName.segments)
        var segments = Set(listings.compactMap { Bits128($0.name) })
        memory.noteVersions(of: listings)
        // What is not listed is not lost then.
        if !isAll { segments.formUnion(memory.published?.head.segmentNames ?? []) }
        // What is damaged is as good as missing: it is written again by whoever has its content.
        segments.subtract(memory.damagedSegments)
        memory.segments = segments
        return segments
    }

    /// The same, without looking if nobody else has done anything since the last look.
    func knownSegments() async throws(RemoteError) -> Set<Bits128> {
        if let segments = memory.segments { return segments }
        return try await listSegments()
    }

    /// Finds out the parts of a head.
    private func makeOut(_ written: WrittenHead, _ found: inout FoundHead) async throws(RemoteError) {
        let wrapping = try wrapping
        var index: [String: Head.Part] = [:]
        if written.head.index != .zero {
            (index, found.isWhole) = try await readIndex(written.head.index, &found.problems)
        }
        found.head.parts = index
        for store in written.absent { found.head.parts[store] = nil }
        for (store, part) in written.parts {
            found.head.parts[store] = nil
            if case .over = part.form, index[store] == nil {
                // Lost with the index, or with the index's version vector.
                found.isWhole = false
                continue
            }
            guard let vector = try await readVector(part.vectorSegment, &found.problems) else {
                found.isWhole = false
                continue
            }
            found.head.parts[store] = part.part(over: index[store], vector: vector, wrapping)
            if found.head.parts[store] == nil {
                found.problems.append("What h/\(found.name) has of the store \(store) makes no sense.")
            }
        }
    }

    /// Reads an index.
    /// - Returns: the parts that could be made out, and whether these are all.
    private func readIndex(
        _ name: Bits128, _ problems: inout [String]
    ) async throws(RemoteError) -> ([String: Head.Part], Bool) {
        if let parts = memory.indexes[name] { return (parts, true) }
        guard let written = try await readNamed(name, &problems, Index.decode) else { return ([:], false) }
        let wrapping = try wrapping
        var parts: [String: Head.Part] = [:]
        for (store, part) in written {
            guard let vector = try await readVector(part.vectorSegment, &problems) else { continue }
            parts[store] = part.part(over: nil, vector: vector, wrapping)
        }
        if parts.count == written.count { memory.indexes[name] = parts }
        return (parts, parts.count == written.count)
    }

    /// Reads a segment of a version vector; none has nothing.
    func readVector(_ name: Bits128, _ problems: inout [String]) async throws(RemoteError) -> VersionVector? {
        if name == .zero { return VersionVector() }
        if let vector = memory.vectors[name] { return vector }
        let vector = try await readNamed(name, &problems, VectorSegment.decode)
        memory.vectors[name] = vector
        return vector
    }

    private func readNamed<Content>(
        _ name: Bits128, _ problems: inout [String], _ decode: ([UInt8]) throws(BlobFlaw) -> Content
    ) async throws(RemoteError) -> Content? {
        let bytes: [UInt8]
        switch try await readSegment(name) {
        case .absent: return nil
        case .damaged(let sentence):
            problems.append(sentence)
            return nil
        case .bytes(let content): bytes = content
        }
        do throws(BlobFlaw) { return try decode(bytes) } catch {
            if error == .tooNew { throw RemoteError.tooNew }
            problems.append("The file s/\(name) makes no sense.")
            return nil
        }
    }

    /// The digests of the entries in a base; `nil` if not all of it can be read.
    func contents(of base: [BaseSegment], store: String) async throws(RemoteError) -> [Key: Bits128]? {
        var contents: [Key: Bits128] = [:]
        for segment in base where segment.name != .zero {
            if memory.contents[segment.name] == nil {
                guard case .entries = try await readBase([segment], store: store) else { return nil }
            }
            contents.merge(memory.contents[segment.name] ?? [:]) { $1 }
        }
        return contents
    }

    /// Reads a segment.
    /// - Returns: what is in it, in plain.
    func readSegment(_ name: Bits128) async throws(RemoteError) -> SegmentContent {
        let wrapping = try wrapping
        switch try await storage.get(BlobName.segment(name), limit: wrapping.segmentLimit, unless: nil) {
        case .absent, .unchanged: return .absent
        case .unreadable(let clause): return .damaged("The file s/\(name) \(clause).")
        case .content(let bytes, _):
            guard let content = wrapping.content(of: bytes, named: name) else {
                memory.damagedSegments.insert(name)
                memory.goodSegments.remove(name)
                return .damaged("The file s/\(name) is damaged.")
            }
            memory.damagedSegments.remove(name)
            memory.goodSegments.insert(name)
            memory.garbage.noteLength(bytes.count, of: name)
            return .bytes(content)
        }
    }

    /// Reads the entries of a base.
    func readBase(_ base: [BaseSegment], store: String) async throws(RemoteError) -> BaseContent {
        let wrapping = try wrapping
        var entries: [Key: Entry] = [:]
        var size = 0
        for part in base where part.name != .zero {
            let name = part.name
            let bytes: [UInt8]
            switch try await readSegment(name) {
            case .absent: return .lacking(nil)
            case .damaged(let sentence): return .lacking(sentence)
            case .bytes(let content): bytes = content
            }
            size += bytes.count
            let segment: Segment
            do throws(BlobFlaw) { segment = try Segment(decoding: bytes, wrapping) } catch {
                if error == .tooNew { throw RemoteError.tooNew }
                return .corrupt("The file s/\(name) makes no sense.")
            }
            guard segment.store == store, segment.bucket == part.bucket else {
                return .corrupt("The file s/\(name) is not of the store \(store).")
            }
            if memory.contents[name] == nil {
                memory.contents[name] = StateDigests(of: StoreState(entries: segment.entries), store: store).entries
            }
            let memory = 2 * bytes.count + segment.entries.count * RemoteHoldings.entry
            try share.hold { $0.news += memory }
            entries.merge(segment.entries) { $1 }
            guard entries.count <= EntryLimits.entries, size <= Segment.limit else {
                return .corrupt(tooLarge(store))
            }
        }
        return .entries(entries)
    }

    /// What was read is joined, or not needed any more. What is remembered of it is not more than it was.
    func forgetNews() {
        let remembered = memory.remembered
        try? share.hold { ($0.news, $0.remembered) = (0, min(remembered, $0.news + $0.remembered)) }
    }

    /// Reads a part's state.
    func readState(of part: Head.Part, store: String) async throws(RemoteError) -> PartContent {
        let base: [Key: Entry]
        switch try await readBase(part.base, store: store) {
        case .lacking where !Rule.wholeStates.isOn: return .state(part.state(over: [:]))
        case .lacking(let sentence): return .lacking(sentence)
        case .corrupt(let sentence): return .corrupt(sentence)
        case .entries(let entries): base = entries
        }
        let state = part.state(over: base)
        let digests = StateDigests(of: state, store: store)
        guard digests.state == part.digest else {
            return .corrupt("What a device published of the store \(store) is not what it says it is.")
        }
        guard state.entries.count <= EntryLimits.entries, digests.totalSize <= EntryLimits.storeBytes else {
            return .corrupt(tooLarge(store))
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
    case corrupt(String)
}

/// What became of reading a part.
enum PartContent {
    case state(StoreState)
    /// Not arrived, or not whole; it may still come.
    case lacking(String?)
    /// It is as it was written, and it is wrong.
    case corrupt(String)
}
