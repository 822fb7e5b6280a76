// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import Replication
internal import Sealing

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

extension PublishedHead {
    /// A head that is there as the one that this device published, if that is what it seems to be.
    init(doubting found: FoundHead) {
        self.init(head: found.head, digest: found.digest, length: found.length, isTrusted: false)
    }
}

/// What this device publishes: writes its head, finds out what became of it, and removes those that it replaces.
final class OwnHead<Storage: BlobStorage> {
    private let storage: Storage
    private let account: BlobAccount<Storage>
    private let segments: SegmentFolder<Storage>
    private let writer: HeadWriter<Storage>
    private let environment: Environment
    /// The heads of this device, this one's and its predecessor's.
    private var heads = OwnHeads()
    /// What is known to be there of this device, and to hold what was acknowledged.
    private(set) var published: PublishedHead?
    private var doubts = SegmentDoubts()
    /// Not all segments of the head were there when they were looked for last.
    private var lacksSegments = false

    init(
        _ storage: Storage, of account: BlobAccount<Storage>, _ segments: SegmentFolder<Storage>,
        _ writer: HeadWriter<Storage>, _ environment: Environment
    ) {
        (self.storage, self.account, self.segments, self.writer) = (storage, account, segments, writer)
        self.environment = environment
    }

    /// The head that was published last under this device's name.
    var identity: HeadIdentity? { heads.published }

    /// The names of the segments of what was published.
    var segmentNames: Set<Bits128> { published?.head.segmentNames ?? [] }

    /// Everything is to be joined anew: this device goes on from another one's data.
    var readsAnew: Bool { heads.readsAnew }

    /// What was read is joined.
    func noteJoined() { heads.noteJoined() }

    /// Everything is to be downloaded anew.
    func forgetJoined() {
        heads.forgetHeld()
        published?.isTrusted = false
    }

    // MARK: Looking

    /// What became of this device's own head.
    func publication(
        in found: FoundHeads, as origin: Origin, published count: UInt64, last: HeadIdentity?, isThorough: Bool
    ) async throws(RemoteError) -> OwnPublication {
        let own = found.named(origin)
        switch heads.classify(own?.identity, as: origin, published: count, last: last) {
        case .none: return try await isFormerThere(found, origin, last, isThorough) ? .asPublished : .missing
        case .lost, .older, .inherited: return .missing
        case .foreign: return .foreign
        case .current:
            guard let own, own.isWhole else { return .missing }
            if published == nil {
                know(PublishedHead(head: own.head, digest: own.digest, length: own.length, isTrusted: true))
            }
            return try await hasAllSegments(own.head, isThorough) ? .asPublished : .missing
        }
    }

    /// Whether what the process before this one published is still there, or there was nothing.
    private func isFormerThere(
        _ found: FoundHeads, _ origin: Origin, _ last: HeadIdentity?, _ isThorough: Bool
    ) async throws(RemoteError) -> Bool {
        let isLost = heads.isFormerLost(as: origin, last: last) { origin in
            found.named(origin).map { ($0.identity, $0.isWhole) }
        }
        if isLost { return false }
        guard published == nil, let last, let former = found.named(last.origin) else { return true }
        return try await hasAllSegments(former.head, isThorough)
    }

    /// Whether what our head names is still there. Somebody whom our head had not reached may remove, minutes after they
    /// have replaced theirs, what both shared: so it is looked for once when others have written nothing for a while.
    private func hasAllSegments(_ head: Head, _ isThorough: Bool) async throws(RemoteError) -> Bool {
        // An upload comes later than the look that found it necessary; the looks between them find the same.
        let isCalm = doubts.takeCalm(environment.time())
        guard isThorough || isCalm || lacksSegments || segments.hasDoubts else { return true }
        let isListed = try await segments.list(expecting: segmentNames).isSuperset(of: head.segmentNames)
        let isWhole = try await segments.verifyDoubtful(of: head.segmentNames)
        lacksSegments = !isListed || !isWhole
        return !lacksSegments
    }

    /// Whether others were seen to write since our segments were looked for.
    var haveOthersWritten: Bool { doubts.haveOthersWritten }

    /// Notes the heads that a look has found.
    /// - Parameter before: those of the look before.
    /// - Returns: whether others have written something.
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

    /// Whether others have published what this device has taken in and not published, for a day. It never is at once:
    /// what was received is safe where it came from, and an answer to each message would be answered in turn.
    /// - Parameter known: the digests of heads that were joined.
    func isOutdated(beside heads: [FoundHead], _ known: Set<Bits128>) -> Bool {
        guard let own = published?.head else { return false }
        guard SyncCycle.isDayAway(environment.time(), from: own.time) else { return false }
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

    /// Whether a head that is there under this device's name may be replaced.
    func mayReplace(_ found: FoundHead, of origin: Origin) -> Bool { heads.mayReplace(found.identity, of: origin) }

    /// Writes a head under this device's own name.
    /// - Returns: the segments that the head before it named and that may go, and those that this one names.
    func publish(
        _ head: Head, unlikeLength length: Int?, present: Set<Bits128>
    ) async throws(RemoteError) -> (former: Set<Bits128>, now: Set<Bits128>) {
        let written = try await writer.cut(head, present: present)
        let bytes = try account.wrapping.bytes(of: written, unlikeLength: length, random: environment.random)
        let digest = Head.digest(of: bytes)
        heads.noteWriting(digest)
        try await storage.put(BlobName.head(head.origin), bytes)
        // What was published before a download began anew has nothing in its place until it was read again.
        let former = published.flatMap { $0.isTrusted ? $0.head.segmentNames : nil } ?? []
        var whole = written.head
        whole.parts = head.parts
        if let replaced = published?.head { doubts.noteReplaced(replaced, at: whole.time) }
        know(PublishedHead(head: whole, digest: digest, length: bytes.count, isTrusted: true))
        lacksSegments = false
        return (former, whole.segmentNames)
    }

    /// Remembers a head that is there as this device has it.
    private func know(_ head: PublishedHead) {
        published = head
        heads.notePublished(head.identity)
    }

    /// Removes the head of an origin under which this device writes no more, once everything in it is joined here.
    /// One that is later than all that this device published is of somebody who goes on under the origin.
    /// - Parameter joined: the digests of the heads that were joined.
    /// - Returns: whether it was removed.
    func retire(_ origin: Origin, upTo sequence: UInt64, joined: Set<Bits128>) async throws(RemoteError) -> Bool {
        let wrapping = try account.wrapping
        let content = try await storage.get(BlobName.head(origin), limit: wrapping.headLimit, unless: nil)
        guard case .content(let bytes, _) = content else { return false }
        do throws(BlobFlaw) {
            let head = try wrapping.head(bytes).head
            let found = HeadIdentity(origin: origin, digest: Head.digest(of: bytes), sequence: head.sequence)
            guard heads.mayRetire(found, upTo: sequence, joined: joined) else { return false }
        } catch {
            if error == .tooNew || error == .otherKey || !heads.mayRetireUnreadable(origin, environment.time()) {
                return false
            }
        }
        try await storage.delete(BlobName.head(origin))
        return true
    }
}
