// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import PropertyList
internal import Replication
internal import Sealing

/// What a backend remembers as long as it lives.
struct BlobMemory {
    /// What is known to be there of this device, and to hold what was acknowledged.
    private(set) var published: PublishedHead?
    /// The heads of this device, this one's and its predecessor's.
    var own = OwnHeads()

    /// Heads whose news are joined, of those that were there at the last pull.
    var joinedHeads: Set<Bits128> = []
    /// The digests of states that are joined, of those that were there at the last pull.
    var joinedParts: [String: Set<Bits128>] = [:]

    /// The digests of states that were not read though their heads count as joined.
    var passedOver: [String: Set<Bits128>] = [:]

    /// What is wrong with states of these heads that were read and make no sense, by store and digest.
    var corrupt: [String: [Bits128: String]] = [:]

    /// What segments have that heads name: the digests of a bucket's entries, a version vector, an index's parts.
    var contents: [Bits128: [Key: Bits128]] = [:]
    var vectors: [Bits128: VersionVector] = [:]
    var indexes: [Bits128: [String: Head.Part]] = [:]
    /// Segments whose content this process has seen to be right.
    var goodSegments: Set<Bits128> = []
    /// Segments whose content was another than their name says.
    var damagedSegments: Set<Bits128> = []
    /// The versions of segments that the storage listed last.
    var segmentVersions: [Bits128: String] = [:]
    /// Own segments that may not be what was written any more: they are read before they count as being there.
    var doubtfulSegments: Set<Bits128> = []
    /// When all own segments were doubted last; at first when this process looked first.
    var doubtedAt: UInt64?
    /// An own head that other devices had time to read before the next one came.
    var settled: Head?
    /// The push that is under way has written more than a head.
    var hasFolded = false
    /// What may go.
    var garbage = GarbageMemory()

    /// The heads that the last pull found, by their names.
    var found: [String: FoundHead] = [:]
    /// The names of heads that the storage listed then; the push that follows this look uses them up.
    var listed: Set<String>?
    /// Whether these are all that the storage listed, and every one could be read.
    var hasFoundAll = false
    /// The folders of markers and segments that hold more than is listed.
    var fullFolders: Set<String> = []
    /// When a head was another one than at the pull before, until our own segments were looked for some time later.
    var changedAt: UInt64?
    /// Not all segments of our own head were there when they were looked for last.
    var lacksSegments = false
    /// The account as a pull has seen it last.
    var account: RemoteAccount?
    /// Markers whose content this process has seen to be right: they never change.
    var goodMarkers: Set<Bits128> = []
    /// The same of sealed ones, and of notes by their names.
    var sealedMarkers: [Bits128: SealedMarker] = [:]
    var notes: [String: KeyLink] = [:]
    /// The segments that are there, as long as nobody else was seen to do anything.
    var segments: Set<Bits128>?
    var pulls = 0

    /// About how many bytes it takes what is remembered of segments.
    var remembered: Int { contents.values.reduce(0) { $0 + $1.count * RemoteHoldings.entry / 2 } }

    /// A head of this device.
    struct PublishedHead {
        let head: Head
        let digest: Bits128
        let length: Int
        /// What the engine has marked as published is in it.
        var isTrusted: Bool

        var identity: HeadIdentity {
            HeadIdentity(origin: head.origin, digest: digest, sequence: head.sequence)
        }

        /// What decisions are made on.
        var seen: SeenHead {
            SeenHead(
                identity, under: head.origin.description, isWhole: true, states: head.states,
                segments: head.segmentNames)
        }
    }

    /// Forgets the markers, which are to be read anew.
    mutating func forgetMarkers() { (goodMarkers, sealedMarkers, notes) = ([], [:], [:]) }

    /// Forgets what was joined: everything is to be downloaded anew.
    mutating func forgetJoined() {
        joinedHeads = []
        joinedParts = [:]
        passedOver = [:]
        corrupt = [:]
        own.forgetHeld()
        published?.isTrusted = false
    }

    /// Decides whether it has to be asked whose place it is, after a look at the heads (docs/decisions/0018).
    /// - Parameters:
    ///   - account: whose it was.
    ///   - before: the heads of the look before.
    ///   - hasAsked: it was asked just before these heads were listed.
    func isInDoubt(of account: RemoteAccount, since before: [String: FoundHead], hasAsked: Bool) -> Bool {
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

    /// Doubts own segments of which the storage lists another version than before.
    mutating func noteVersions(of listings: [BlobListing]) {
        var versions: [Bits128: String] = [:]
        for listing in listings {
            guard let name = Bits128(listing.name), let version = listing.version else { continue }
            versions[name] = version
            if let before = segmentVersions[name], before != version { doubtfulSegments.insert(name) }
        }
        segmentVersions = versions
    }

    /// Doubts all own segments: once a day, and sooner if another device publishes and has not taken in what it had time
    /// to read. Such a device may have found a segment to be damaged, and cannot say so.
    mutating func doubtOwnSegments(_ now: UInt64, isThorough: Bool, since before: [String: FoundHead]) {
        guard let own = published?.head else { return }
        let age = doubtedAt.map { now < $0 ? UInt64.max : now - $0 } ?? 0
        let isDue = isThorough && age >= Retention.day
        guard isDue || (age >= Self.doubtInterval && isBehind(now, own, since: before)) else {
            doubtedAt = doubtedAt ?? now
            return
        }
        doubtedAt = now
        doubtfulSegments.formUnion(own.segmentNames)
    }

    private static let doubtInterval: UInt64 = 600_000_000
    /// A device that publishes has looked just before.
    private static let readingTime: UInt64 = 120_000_000

    private func isBehind(_ now: UInt64, _ own: Head, since before: [String: FoundHead]) -> Bool {
        let hadTime = own.time <= now && now - own.time >= Self.readingTime
        guard let read = hadTime ? own : settled, read.origin == own.origin else { return false }
        return found.contains { name, found in
            guard found.isWhole, !found.isCopy, found.head.origin != own.origin, before[name]?.digest != found.digest
            else { return false }
            return !found.head.dominates(read)
        }
    }

    /// Remembers a head that was published.
    mutating func notePublished(_ published: PublishedHead) {
        let time = published.head.time
        if let former = self.published?.head, former.time <= time, time - former.time >= Self.readingTime {
            settled = former
        }
        know(published)
    }

    /// Remembers a head that is there as this device has it.
    mutating func know(_ published: PublishedHead) {
        self.published = published
        own.notePublished(published.identity)
    }

    /// Forgets what segments have that no head names any more.
    mutating func forgetUnnamed() {
        var named = Set(found.values.flatMap(\.head.segmentNames))
        if let published { named.formUnion(published.head.segmentNames) }
        contents = contents.filter { named.contains($0.key) }
        vectors = vectors.filter { named.contains($0.key) }
        indexes = indexes.filter { named.contains($0.key) }
        goodSegments.formIntersection(named)
    }
}
