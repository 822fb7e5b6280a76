// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import PropertyList
internal import Replication
internal import Sealing

/// A head in the remote.
struct FoundHead {
    let name: String
    let digest: Bits128
    let length: Int
    /// The file's version, if the storage has versions.
    var version: String?
    /// The head, with the parts that could be resolved.
    var head: Head
    /// The approximate size in memory when it was read, in bytes.
    var footprint = 0
    /// Whether all parts could be resolved.
    var isWhole = true
    /// What to report about it, as sentences for users.
    var problems: [String] = []
    /// How many sentences of a head are kept.
    static let mostProblems = 4

    var identity: HeadIdentity { HeadIdentity(origin: head.origin, digest: digest, sequence: head.sequence) }

    /// Whether the file's name is not its origin's, as sync tools name copies. Its segments may be long gone, so no
    /// device waits for them; if they are there, they are read.
    var isCopy: Bool { name != head.origin.description }

    /// The head as ``HeadNews`` and ``GarbageMemory`` see it.
    var seen: SeenHead {
        SeenHead(identity, under: name, isWhole: isWhole, states: head.states, segments: head.segmentNames)
    }
}

/// The heads of an account in the remote, one of each digest, and what to report, as sentences for users: first what
/// keeps this device from reading something.
struct FoundHeads {
    var heads: [FoundHead] = []
    var problems: [String] = []

    func named(_ origin: Origin) -> FoundHead? {
        heads.first { $0.name == origin.description }
    }

    init(_ found: [FoundHead], of account: RemoteAccount, problems: [String]) {
        self.problems = problems
        var foreign: [String] = []
        for head in found {
            guard account.isNamed(head.head.account.description) else {
                foreign.append("The file h/\(head.head.origin) belongs to another account and is skipped.")
                continue
            }
            // A sync tool has copied a version that is also there itself.
            if heads.contains(where: { $0.digest == head.digest }) { continue }
            heads.append(head)
            self.problems += head.problems
        }
        self.problems += foreign
    }
}

/// The heads in `h/`, as they were last read.
final class HeadFolder<Storage: BlobStorage> {
    private let storage: Storage
    private let account: BlobAccount<Storage>
    private let parts: PartReader<Storage>
    private let share: RemoteBudget.Share
    /// The maximum size of all heads together, in bytes. They are held in memory, and anyone who may write to the
    /// remote can put heads there that are small as files and large once decoded.
    private let mostBytes: Int
    /// The heads that were last read, by name.
    private(set) var found: [String: FoundHead] = [:]
    /// The heads that could not be read then, because they are damaged or not whole.
    private(set) var unreadable: [HeadFile] = []
    /// The names that the storage listed then; `nil` once a push has used them.
    private(set) var listed: Set<String>?
    /// Whether ``found`` has every head that the storage listed.
    private(set) var hasFoundAll = false

    init(
        _ storage: Storage, of account: BlobAccount<Storage>, _ parts: PartReader<Storage>, _ share: RemoteBudget.Share,
        mostBytes: Int
    ) {
        (self.storage, self.account, self.parts, self.share) = (storage, account, parts, share)
        self.mostBytes = mostBytes
    }

    /// The heads as ``GarbageMemory`` sees them.
    var seen: [SeenHead] { found.values.map(\.seen) }

    /// Forgets the listed names, so that the next push asks for them again.
    func forgetListed() { listed = nil }

    // MARK: Reading

    /// Refuses an account to which a newer version of this service publishes, before anything is changed for it.
    /// - Returns: whether there are heads.
    func checkFormat() async throws(RemoteError) -> Bool {
        let wrapping = try account.wrapping
        let listings = try await storage.list(BlobName.heads).filter { Origin($0.name) != nil }
        for listing in listings.prefix(BlobName.mostHeads) {
            let content = try await storage.get(
                "\(BlobName.heads)/\(listing.name)", limit: wrapping.headLimit, unless: nil)
            guard case .content(let bytes, _) = content else { continue }
            // The first pull reports heads that can't be read for other reasons.
            let memory = DecodingMemory(in: share)
            defer { memory.release() }
            do throws(BlobFlaw) { _ = try wrapping.head(bytes, in: memory) } catch {
                try memory.fail()
                if error == .tooNew { throw RemoteError.tooNew }
                if error == .otherKey, account.protection.held == nil { throw RemoteError.keyNeeded }
            }
        }
        return !listings.isEmpty
    }

    /// Lists the heads, and reads those that the storage doesn't report as unchanged.
    /// - Parameters:
    ///   - trustingVersions: whether to trust the storage's versions.
    ///   - origin: this device's origin.
    /// - Returns: what to report about heads that could not be read, as sentences for users.
    func read(trustingVersions: Bool, as origin: Origin) async throws(RemoteError) -> [String] {
        var problems: [String] = []
        var found: [String: FoundHead] = [:]
        var bytes = 0
        let (listings, isAll) = try await list(as: origin, &problems)
        unreadable = []
        if !isAll { problems.append("The folder h holds too many files; some were not read.") }
        for listing in listings {
            guard bytes < mostBytes else {
                problems.append("The heads in the folder h are too large together; some were not read.")
                break
            }
            let news = share.news
            guard let head = try await read(listing, trustingVersions: trustingVersions, &problems) else { continue }
            bytes += max(head.length, head.footprint)
            found[listing.name] = head
            // The previous heads stay in memory until all are read. What decoding took is in the head now, but for what
            // the head doesn't use.
            try share.hold {
                ($0.kept, $0.news) = (max($0.kept, bytes), max(news, $0.news - head.footprint))
            }
        }
        self.found = found
        try share.hold { $0.kept = bytes }
        listed = Set(listings.map(\.name))
        hasFoundAll = isAll && found.count == listings.count
        return problems
    }

    /// Lists the heads to read, shorter names first, so that a head comes before its copies.
    /// - Returns: the heads, and whether these are all.
    private func list(
        as origin: Origin, _ problems: inout [String]
    ) async throws(RemoteError) -> ([BlobListing], isAll: Bool) {
        let all = try await storage.list(BlobName.heads).filter { BlobName.origin(inHeadName: $0.name) != nil }
        let listings = all.filter { !BlobName.hasControls($0.name) }
            .sorted { ($0.name.utf8.count, $0.name) < ($1.name.utf8.count, $1.name) }
        if listings.count < all.count {
            problems.append(
                "The folder h holds names with control characters, which nobody gives; they are skipped.")
        }
        if listings.count <= BlobName.mostHeads { return (listings, true) }
        // Foreign names must not hide the known heads and this device's own, which may not even be among those listed.
        let known = Set(found.keys).union([origin.description])
        var versions: [String: String] = [:]
        for listing in listings where known.contains(listing.name) { versions[listing.name] = listing.version }
        let others = listings.filter { !known.contains($0.name) }.prefix(max(0, BlobName.mostHeads - known.count))
        return (known.sorted().map { BlobListing(name: $0, version: versions[$0]) } + others, false)
    }

    private func read(
        _ listing: BlobListing,
        trustingVersions: Bool,
        _ problems: inout [String]
    ) async throws(RemoteError) -> FoundHead? {
        let known = trustingVersions ? found[listing.name] : nil
        if let known, known.isWhole, let version = known.version, version == listing.version { return known }
        let isPlain = listing.name.utf8.count == 16
        let name = "\(BlobName.heads)/\(listing.name)"
        let limit = try account.wrapping.headLimit
        switch try await storage.get(name, limit: limit, unless: known?.isWhole == true ? known?.version : nil) {
        case .absent:
            return nil
        case .unchanged:
            return known
        case .unreadable(let clause):
            if isPlain { problems.append("The file h/\(listing.name) \(clause).") }
            return nil
        case .content(let bytes, let version):
            var found = try await decode(bytes, named: listing.name, &problems)
            found?.version = version
            return found
        }
    }

    private func decode(
        _ bytes: [UInt8],
        named name: String,
        _ problems: inout [String]
    ) async throws(RemoteError) -> FoundHead? {
        func noteUnreadable(_ sentence: String) {
            problems.append(
                sentence + " If no device writes it again, it is removed after a month; if no value is missing here, "
                    + "you can remove it now and lose nothing.")
            unreadable.append(HeadFile(name: name, digest: Head.digest(of: bytes)))
        }
        let written: WrittenHead
        let wrapping = try account.wrapping
        let memory = DecodingMemory(in: share)
        do throws(BlobFlaw) { written = try wrapping.head(bytes, in: memory) } catch {
            try memory.fail()
            switch error {
            case .tooNew: throw RemoteError.tooNew
            case .otherKey where !account.protection.isWanted:
                throw RemoteError.encrypted(under: SealedBlob.key(ofHead: bytes))
            // The head belongs to a former or future form of this account, or to a rejected key.
            case .otherKey where account.protection.skipsSilently(bytes): break
            case .otherKey:
                // The account may have moved to another key.
                account.doubt()
                problems.append(
                    "The file h/\(name.prefix(16)) is not under the account's key and is skipped. If the key was "
                        + "replaced, the device that did so removes the file a quarter of an hour later.")
            case .tooOld: problems.append("The file h/\(name.prefix(16)) is of a format that is not read any more.")
            case .foreign where name.utf8.count != 16: break
            case .foreign: noteUnreadable("The file h/\(name) is not a head, or has not arrived completely.")
            case .damaged(let clause): noteUnreadable("The file h/\(name.prefix(16)) is damaged: \(clause).")
            }
            return nil
        }
        var found = FoundHead(name: name, digest: Head.digest(of: bytes), length: bytes.count, head: written.head)
        // Another account's heads are not resolved, unless a marker says that it is the same account.
        found.isWhole = account.identifiers.contains(written.head.account)
        if found.isWhole { try await parts.resolveParts(written, &found) }
        // Each of its parts may be corrupt.
        found.problems = Array(found.problems.prefix(FoundHead.mostProblems))
        return found
    }

    /// Reads the head that is now under an origin's name; `nil` if there is none.
    func read(of origin: Origin) async throws(RemoteError) -> FoundHead? {
        let content = try await storage.get(BlobName.head(origin), limit: try account.wrapping.headLimit, unless: nil)
        guard case .content(let bytes, _) = content else { return nil }
        var problems: [String] = []
        return try await decode(bytes, named: origin.description, &problems)
    }

    /// Lists the names that are there now.
    func names() async throws(RemoteError) -> Set<String> { Set(try await storage.list(BlobName.heads).map(\.name)) }

    // MARK: Deciding

    /// Decides from the heads whether the markers have to be read again (docs/decisions/0018).
    /// - Parameters:
    ///   - account: the account as the markers last showed it.
    ///   - before: the heads that were read before.
    ///   - hasReadMarkers: whether the markers were read just before these heads were listed.
    func areInDoubt(of account: RemoteAccount, since before: [String: FoundHead], hasReadMarkers: Bool) -> Bool {
        // The remote may have been emptied, and hold another account now.
        if before.keys.contains(where: { found[$0] == nil }) { return true }
        if hasReadMarkers { return false }
        // Without heads, only a marker tells which account this is. A new device may have put its own marker beside
        // the known one, and publishes under the smaller of the two identifiers.
        return found.isEmpty
            || found.contains { name, found in
                before[name] == nil || !account.isNamed(found.head.account.description)
            }
    }

    /// Returns the parts of other devices' heads, by store: the ways in which they have cut their states.
    func foreignParts(besides origin: Origin, _ account: RemoteAccount) -> [String: [Head.Part]] {
        var parts: [String: [Head.Part]] = [:]
        for (_, found) in found.sorted(by: { $0.key < $1.key })
        where found.head.origin != origin && account.isNamed(found.head.account.description) {
            for (store, part) in found.head.parts where parts[store]?.contains(part) != true {
                parts[store, default: []].append(part)
            }
        }
        return parts
    }

    // MARK: Removing

    /// Removes another device's head, unless it was replaced after it was read.
    /// - Returns: whether it was removed.
    func remove(_ head: HeadFile) async throws(RemoteError) -> Bool {
        let name = "\(BlobName.heads)/\(head.name)"
        let content = try await storage.get(name, limit: try account.wrapping.headLimit, unless: nil)
        guard case .content(let bytes, _) = content, Head.digest(of: bytes) == head.digest else { return false }
        try await storage.delete(name)
        found[head.name] = nil
        return true
    }
}
