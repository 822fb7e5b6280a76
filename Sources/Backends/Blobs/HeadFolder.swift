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

    /// What decisions are made on.
    var seen: SeenHead {
        SeenHead(identity, under: name, isWhole: isWhole, states: head.states, segments: head.segmentNames)
    }
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

/// What lies in `h/`: the heads that were there at the last look.
final class HeadFolder<Storage: BlobStorage> {
    private let storage: Storage
    private let account: BlobAccount<Storage>
    private let parts: PartReader<Storage>
    private let share: RemoteBudget.Share
    /// All heads together may take so many bytes: they are held in memory, and whoever may write to the place may put
    /// heads there that are small as files and large when they are decoded.
    private let mostBytes: Int
    /// Those that the last look found, by their names.
    private(set) var found: [String: FoundHead] = [:]
    /// The names that the storage listed then; the push that follows the look uses them up.
    private(set) var listed: Set<String>?
    /// Whether these are all that the storage listed, and every one could be read.
    private(set) var hasFoundAll = false

    init(
        _ storage: Storage, of account: BlobAccount<Storage>, _ parts: PartReader<Storage>, _ share: RemoteBudget.Share,
        mostBytes: Int
    ) {
        (self.storage, self.account, self.parts, self.share) = (storage, account, parts, share)
        self.mostBytes = mostBytes
    }

    /// What decisions are made on.
    var seen: [SeenHead] { found.values.map(\.seen) }

    /// Has names listed anew for the next push.
    func forgetListed() { listed = nil }

    // MARK: Reading

    /// Refuses an account that a newer version of this service publishes in, before anything is changed for it.
    /// - Returns: whether there are heads.
    func checkFormat() async throws(RemoteError) -> Bool {
        let wrapping = try account.wrapping
        let listings = try await storage.list(BlobName.heads).filter { Origin($0.name) != nil }
        for listing in listings.prefix(BlobName.mostHeads) {
            let content = try await storage.get(
                "\(BlobName.heads)/\(listing.name)", limit: wrapping.headLimit, unless: nil)
            guard case .content(let bytes, _) = content else { continue }
            // What can't be read for another reason is named by the first pull.
            do throws(BlobFlaw) { _ = try wrapping.head(bytes) } catch {
                if error == .tooNew { throw RemoteError.tooNew }
                if error == .otherKey, account.protection.held == nil { throw RemoteError.keyNeeded }
            }
        }
        return !listings.isEmpty
    }

    /// Looks at the heads that are there, and reads those of which the storage does not say that it has none but
    /// those that were read.
    /// - Parameters:
    ///   - believing: whether what the storage says of versions is believed.
    ///   - origin: that of this device.
    /// - Returns: what is to be said about those that could not be.
    func read(believing: Bool, as origin: Origin) async throws(RemoteError) -> [String] {
        var problems: [String] = []
        var found: [String: FoundHead] = [:]
        var bytes = 0
        let (listings, isAll) = try await list(as: origin, &problems)
        if !isAll { problems.append("The folder h holds too many files; some were not read.") }
        for listing in listings {
            guard bytes < mostBytes else {
                problems.append("The heads in the folder h are too large together; some were not read.")
                break
            }
            guard let head = try await read(listing, believing: believing, &problems) else { continue }
            bytes += max(head.length, head.footprint)
            found[listing.name] = head
            // Those of the last look are there until all are read.
            try share.hold { $0.kept = max($0.kept, bytes) }
        }
        self.found = found
        try share.hold { $0.kept = bytes }
        listed = Set(listings.map(\.name))
        hasFoundAll = isAll && found.count == listings.count
        return problems
    }

    /// Plain names first, so that a copy of a head is found to be one.
    /// - Returns: what is to be read, and whether that is all there is.
    private func list(
        as origin: Origin, _ problems: inout [String]
    ) async throws(RemoteError) -> ([BlobListing], isAll: Bool) {
        let all = try await storage.list(BlobName.heads).filter { BlobName.origin(inHeadName: $0.name) != nil }
        let listings = all.filter { !BlobName.hasControls($0.name) }
            .sorted { ($0.name.utf8.count, $0.name) < ($1.name.utf8.count, $1.name) }
        if listings.count < all.count {
            problems.append(
                "The folder h holds names with control characters, which nobody gives; they are passed over.")
        }
        if listings.count <= BlobName.mostHeads { return (listings, true) }
        // Strange names must not hide what was there before, nor this device's own head. They may not even be listed.
        let known = Set(found.keys).union([origin.description])
        var versions: [String: String] = [:]
        for listing in listings where known.contains(listing.name) { versions[listing.name] = listing.version }
        let others = listings.filter { !known.contains($0.name) }.prefix(max(0, BlobName.mostHeads - known.count))
        return (known.sorted().map { BlobListing(name: $0, version: versions[$0]) } + others, false)
    }

    private func read(
        _ listing: BlobListing,
        believing: Bool,
        _ problems: inout [String]
    ) async throws(RemoteError) -> FoundHead? {
        let known = believing ? found[listing.name] : nil
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
        let written: WrittenHead
        let wrapping = try account.wrapping
        do throws(BlobFlaw) { written = try wrapping.head(bytes) } catch {
            switch error {
            case .tooNew: throw RemoteError.tooNew
            case .otherKey where !account.protection.isWanted:
                throw RemoteError.encrypted(under: SealedBlob.key(ofHead: bytes))
            // Of this account as it was before, or as it is going to be.
            case .otherKey where account.protection.passesOver(bytes): break
            case .otherKey:
                // The account may be under another key since.
                account.doubt()
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
        found.isWhole = account.identifiers.contains(written.head.account)
        if found.isWhole { try await parts.makeOut(written, &found) }
        found.footprint = found.head.footprint
        return found
    }

    /// The head under an origin's name as it is now, if there is one.
    func read(of origin: Origin) async throws(RemoteError) -> FoundHead? {
        let content = try await storage.get(BlobName.head(origin), limit: try account.wrapping.headLimit, unless: nil)
        guard case .content(let bytes, _) = content else { return nil }
        var problems: [String] = []
        return try await decode(bytes, named: origin.description, &problems)
    }

    /// The names that are there now.
    func names() async throws(RemoteError) -> Set<String> { Set(try await storage.list(BlobName.heads).map(\.name)) }

    // MARK: Deciding

    /// Decides whether it has to be asked whose place it is, after a look at the heads (docs/decisions/0018).
    /// - Parameters:
    ///   - account: whose it was.
    ///   - before: the heads of the look before.
    ///   - hasAsked: it was asked just before these heads were listed.
    func areInDoubt(of account: RemoteAccount, since before: [String: FoundHead], hasAsked: Bool) -> Bool {
        // The place may have been emptied, and be another account's since.
        if before.keys.contains(where: { found[$0] == nil }) { return true }
        if hasAsked { return false }
        // Without heads nothing but the marker tells whose place it is. Who comes may have put a marker of their own
        // beside the one that is known, and publishes under the smaller name of the two.
        return found.isEmpty
            || found.contains { name, found in
                before[name] == nil || !account.isNamed(found.head.account.description)
            }
    }

    /// How other devices have cut what they hold, of what is there whole.
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

    /// Removes another device's head, unless it was written anew since it was read.
    /// - Returns: whether it was removed.
    func remove(_ head: SeenHead) async throws(RemoteError) -> Bool {
        let name = "\(BlobName.heads)/\(head.name)"
        let content = try await storage.get(name, limit: try account.wrapping.headLimit, unless: nil)
        guard case .content(let bytes, _) = content, Head.digest(of: bytes) == head.digest else { return false }
        try await storage.delete(name)
        found[head.name] = nil
        return true
    }
}
