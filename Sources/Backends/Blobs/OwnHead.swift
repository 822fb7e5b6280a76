// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import Replication
internal import Sealing

/// A head of this device.
struct PublishedHead {
    let head: Head
    let digest: Bits128
    let length: Int
    /// Whether the head has everything that the engine has marked as published.
    var isTrusted: Bool

    var identity: HeadIdentity {
        HeadIdentity(origin: head.origin, digest: digest, sequence: head.sequence)
    }

    /// The head as ``GarbageMemory`` sees it.
    var seen: SeenHead {
        SeenHead(
            identity, under: head.origin.description, isWhole: true, states: head.states,
            segments: head.segmentNames)
    }
}

extension PublishedHead {
    /// Makes a head of this device from one in the remote that seems to be, without trusting it.
    init(doubting found: FoundHead) {
        self.init(head: found.head, digest: found.digest, length: found.length, isTrusted: false)
    }
}

/// This device's publication: writes its head, checks what has become of it, and removes the heads that it replaces.
final class OwnHead<Storage: BlobStorage> {
    private let storage: Storage
    private let account: BlobAccount<Storage>
    private let segments: SegmentFolder<Storage>
    private let writer: HeadWriter<Storage>
    /// This account's share of the memory that all accounts may hold.
    private let share: RemoteBudget.Share
    private let environment: Environment
    /// The heads of this device, from this process and the previous one.
    private var heads = OwnHeads()
    /// The head that this device has in the remote; `nil` if this process doesn't know it yet.
    private(set) var published: PublishedHead?
    private var doubts = SegmentDoubts()
    /// Whether the last check found that segments of the head were missing or damaged.
    private var lacksSegments = false

    /// The time after which this device publishes again because others' segments are damaged, in microseconds.
    private static var signInterval: UInt64 { 3_600_000_000 }

    init(
        _ storage: Storage, of account: BlobAccount<Storage>, _ segments: SegmentFolder<Storage>,
        _ writer: HeadWriter<Storage>, _ share: RemoteBudget.Share, _ environment: Environment
    ) {
        (self.storage, self.account, self.segments, self.writer) = (storage, account, segments, writer)
        (self.share, self.environment) = (share, environment)
    }

    /// The head that was published last under this device's name; `nil` if unknown.
    var identity: HeadIdentity? { heads.published }

    /// The names of the published head's segments.
    var segmentNames: Set<Bits128> { published?.head.segmentNames ?? [] }

    /// Whether everything has to be read again, because this device has left an origin.
    var readsAnew: Bool { heads.readsAnew }

    /// Notes that what was read is joined.
    func noteJoined() { heads.noteJoined() }

    /// Notes that everything will be downloaded again, so that the published head is no longer trusted.
    func forgetJoined() {
        heads.forgetHeld()
        published?.isTrusted = false
    }

    // MARK: Checking

    /// Determines what has become of this device's head.
    /// - Parameters:
    ///   - isThorough: whether to list the segments that it names.
    ///   - doubtsSegments: whether to read them as well.
    func publication(
        in found: FoundHeads, as origin: Origin, published count: UInt64, last: HeadIdentity?, isThorough: Bool,
        doubtsSegments: Bool
    ) async throws(RemoteError) -> OwnPublication {
        let own = found.named(origin)
        if doubtsSegments, let read = own ?? last.flatMap({ found.named($0.origin) }) {
            segments.doubt(read.head.segmentNames)
        }
        let publication = heads.find(as: origin, published: count, last: last) { origin in
            found.named(origin).map { ($0.identity, $0.isWhole) }
        }
        let named: Origin
        switch publication {
        case .certain(let publication): return publication
        case .head(let origin): named = origin
        }
        if published == nil, named == origin, let own {
            published = PublishedHead(head: own.head, digest: own.digest, length: own.length, isTrusted: true)
        }
        guard let head = published?.head ?? found.named(named)?.head else { return .missing }
        return publication.publication(hasSegments: try await hasAllSegments(head, isThorough))
    }

    /// Whether the segments that this device's head names are still there. A device that has not seen the head may
    /// remove shared segments minutes after it has replaced its own. So they are checked once others stop writing.
    private func hasAllSegments(_ head: Head, _ isThorough: Bool) async throws(RemoteError) -> Bool {
        // The upload that restores segments comes later than the pull that missed them. Pulls in between check again.
        let isCalm = doubts.takeQuietPeriod(environment.time())
        guard isThorough || isCalm || lacksSegments || segments.hasDoubts else { return true }
        let isListed = try await segments.list(expecting: segmentNames).isSuperset(of: head.segmentNames)
        let isWhole = try await segments.verifyDoubtful(of: head.segmentNames)
        lacksSegments = !isListed || !isWhole
        return !lacksSegments
    }

    /// Whether other devices have written since this head's segments were checked.
    var haveOthersWritten: Bool { doubts.haveOthersWritten }

    /// Notes the heads that a pull has found.
    /// - Parameter before: the heads that the previous pull found.
    /// - Returns: whether other devices have written something.
    func note(_ found: [String: FoundHead], since before: [String: FoundHead], isThorough: Bool) -> Bool {
        let now = environment.time()
        let own = published?.digest
        let isChanged = found.contains { before[$0.key]?.digest != $0.value.digest && $0.value.digest != own }
        if isChanged { doubts.noteChange(now) }
        if let own = published?.head,
            doubts.areDue(now, isThorough: isThorough, own: own, found: found, since: before)
        {
            segments.doubt(own.segmentNames)
        }
        return isChanged
    }

    /// Whether this device's head is a day old, and others have published what it has joined since. It doesn't publish
    /// at once: what it received is safe where it came from, and devices would go on answering each other.
    ///
    /// If others' segments are damaged, an hour is enough: a head that lacks what theirs have is the only sign to them
    /// that they have to look at their segments (``SegmentDoubts``).
    /// - Parameters:
    ///   - known: the digests of heads that were joined.
    ///   - foundDamage: whether the previous pull found damaged segments.
    func isOutdated(beside heads: [FoundHead], _ known: Set<Bits128>, foundDamage: Bool) -> Bool {
        guard let own = published?.head else { return false }
        let now = environment.time()
        if foundDamage, SyncCycle.isAway(now, from: own.time, by: Self.signInterval) { return true }
        guard SyncCycle.isDayAway(now, from: own.time) else { return false }
        return heads.contains { found in
            guard known.contains(found.digest), found.head.origin != own.origin else { return false }
            return found.head.parts.contains { store, part in
                guard let mine = own.parts[store] else { return true }
                if mine.digest == part.digest { return part.isPreferable(to: mine) }
                return part.vector.isSuperset(of: mine.vector)
            }
        }
    }

    // MARK: Writing

    /// Whether a push may replace a head under this device's name.
    func mayReplace(_ found: FoundHead, of origin: Origin) -> Bool { heads.mayReplace(found.identity, of: origin) }

    /// Writes a head under this device's name.
    /// - Returns: the names of the previous head's segments, if these may go, and of this head's segments.
    func publish(
        _ head: Head, unlikeLength length: Int?, present: Set<Bits128>
    ) async throws(RemoteError) -> (former: Set<Bits128>, now: Set<Bits128>) {
        let written = try await writer.cut(head, present: present)
        let bytes = try account.wrapping.bytes(of: written, unlikeLength: length, random: environment.random)
        let digest = Head.digest(of: bytes)
        heads.noteWriting(digest)
        try await storage.put(BlobName.head(head.origin), bytes)
        // After a new download has begun, the previous head may hold what was not read again yet, so its segments stay.
        let former = published.flatMap { $0.isTrusted ? $0.head.segmentNames : nil } ?? []
        var whole = written.head
        whole.parts = head.parts
        if let replaced = published?.head { doubts.noteReplaced(replaced, at: whole.time) }
        know(PublishedHead(head: whole, digest: digest, length: bytes.count, isTrusted: true))
        lacksSegments = false
        return (former, whole.segmentNames)
    }

    /// Notes the head that this device has in the remote.
    private func know(_ head: PublishedHead) {
        published = head
        heads.notePublished(head.identity)
    }

    /// Removes the head of an origin that this device no longer uses, once all of it is joined here. A head later than
    /// all that this device published stays, because another device uses the origin.
    /// - Parameter joined: the digests of the heads that were joined.
    /// - Returns: whether it was removed.
    func retire(_ origin: Origin, upTo sequence: UInt64, joined: Set<Bits128>) async throws(RemoteError) -> Bool {
        let wrapping = try account.wrapping
        let content = try await storage.get(BlobName.head(origin), limit: wrapping.headLimit, unless: nil)
        guard case .content(let bytes, _) = content else { return false }
        let memory = DecodingMemory(in: share)
        defer { memory.release() }
        do throws(BlobFlaw) {
            let head = try wrapping.head(bytes, in: memory).head
            let found = HeadIdentity(origin: origin, digest: Head.digest(of: bytes), sequence: head.sequence)
            guard heads.mayRetire(found, upTo: sequence, joined: joined, environment.time()) else { return false }
        } catch {
            try memory.fail()
            if error == .tooNew || error == .otherKey || !heads.mayRetireDoubtful(origin, environment.time()) {
                return false
            }
        }
        try await storage.delete(BlobName.head(origin))
        return true
    }
}
