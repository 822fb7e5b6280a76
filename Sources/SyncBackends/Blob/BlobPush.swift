// SPDX-License-Identifier: Apache-2.0

// An upload: segments first, then the head that names them, then the heads that this one replaces. It may be cut
// anywhere: what is left is the head before, with all its segments, and perhaps segments that nobody names.

internal import PropertyList
internal import StoreEngine
public import SyncEngine

extension BlobBackend {
    /// Begins to upload this device's state.
    public func push(_ publication: Publication) async throws(RemoteError) -> any RemotePush {
        let account = try await presentAccount()
        guard account.isNamed(publication.account), let identifier = Bits128(publication.account) else {
            throw RemoteError(.reset, "There is another account here than the one that is signed in.")
        }
        let names = Set(try await storage.list(BlobName.heads).map(\.name))
        let own = try await readHead(of: publication.origin)
        if let own, account.isNamed(own.head.account.description),
            !memory.mayReplace(own.digest, of: publication.origin)
        {
            throw RemoteError(.unavailable, "Somebody else writes under this device's name; it is looked at first.")
        }
        let formerOrigins = publication.formerOrigins.filter {
            $0 != publication.origin && names.contains($0.description)
        }
        let former = try await formerHead(own, formerOrigins, of: account)
        return BlobPush(
            backend: self,
            publication: publication,
            account: identifier,
            own: own,
            former: former,
            formerOrigins: formerOrigins,
            present: try await listSegments()
        )
    }

    /// What this device published last: what it knows it did, or else what looks like it.
    private func formerHead(
        _ own: FoundHead?,
        _ formerOrigins: [Origin],
        of account: RemoteAccount
    ) async throws(RemoteError) -> (head: Head, isTrusted: Bool)? {
        if let published = memory.published { return (published.head, published.isTrusted) }
        if let own, account.isNamed(own.head.account.description) { return (own.head, false) }
        for origin in formerOrigins.reversed() {
            if let found = try await readHead(of: origin), account.isNamed(found.head.account.description) {
                return (found.head, false)
            }
        }
        return nil
    }

    /// What a part's segments hold, as remembered or read; `nil` if that can't be told.
    func base(of part: Head.Part, store: String) async throws(RemoteError) -> Base? {
        if let base = memory.bases[store], base.segments == part.segments { return base }
        guard case .entries(let entries) = try await readBase(of: part, store: store) else { return nil }
        let digests = StateDigests(of: StoreState(entries: entries), store: store)
        return Base(segments: part.segments, entries: digests.entries)
    }

    /// Sees to it that a segment is there, and whole.
    func ensure(_ name: Bits128, _ bytes: [UInt8], isListed: Bool) async throws(RemoteError) {
        if isListed {
            if memory.goodSegments.contains(name) { return }
            if case .bytes = try await readSegment(name) { return }
        }
        try await storage.put(BlobName.segment(name), bytes)
        memory.goodSegments.insert(name)
    }

    /// Writes a head under this device's own name.
    func publish(_ head: Head, unlikeLength length: Int?, bases: [String: Base]) async throws(RemoteError) {
        try checkOpen()
        let bytes = head.encoded(unlikeLength: length)
        guard bytes.count <= Head.limit else {
            throw RemoteError(.full, "The account has too many stores for one device's part of it.")
        }
        let digest = Head.digest(of: bytes)
        memory.noteWriting(digest)
        try await storage.put(BlobName.head(head.origin), bytes)
        memory.published = BlobMemory.PublishedHead(head: head, digest: digest, length: bytes.count, isTrusted: true)
        for (store, base) in bases { memory.remember(base, of: store) }
    }

    /// Removes the head of an origin under which this device writes no more, once everything in it is joined here.
    func retire(_ origin: Origin) async throws(RemoteError) {
        let content = try await storage.get(BlobName.head(origin), limit: Head.limit, unless: nil)
        guard case .content(let bytes, _) = content else { return }
        let digest = Head.digest(of: bytes)
        let isDamaged: Bool
        do throws(BlobFlaw) {
            _ = try Head(decoding: bytes)
            isDamaged = false
        } catch {
            isDamaged = error != .tooNew
        }
        guard isDamaged || memory.joinedHeads.contains(digest) || memory.written.contains(digest) else { return }
        try await storage.delete(BlobName.head(origin))
    }
}

/// An upload that is under way.
actor BlobPush<Storage: BlobStorage>: RemotePush {
    nonisolated let stores: [String]

    private let backend: BlobBackend<Storage>
    private let publication: Publication
    private let account: Bits128
    private let formerOrigins: [Origin]
    private let sequence: UInt64
    private let formerLength: Int?
    /// What was published before.
    private let former: [String: Head.Part]
    /// The segments that are there.
    private var present: Set<Bits128>
    /// What is going to be published.
    private var parts: [String: Head.Part]
    private var bases: [String: Base] = [:]

    /// All tails together leave half of a head to what is not a tail.
    private static var allTails: Int { 2 << 20 }
    private static var mostTailBytes: Int { 8 << 10 }
    private static var leastTailBytes: Int { 256 }

    init(
        backend: BlobBackend<Storage>,
        publication: Publication,
        account: Bits128,
        own: FoundHead?,
        former: (head: Head, isTrusted: Bool)?,
        formerOrigins: [Origin],
        present: Set<Bits128>
    ) {
        self.backend = backend
        self.publication = publication
        self.account = account
        self.formerOrigins = formerOrigins
        self.present = present
        self.former = former?.head.parts ?? [:]
        formerLength = own?.length
        let sequences = [own?.head, former?.head].compactMap { $0?.origin == publication.origin ? $0?.sequence : nil }
        sequence = (sequences.max() ?? 0) &+ 1
        // Stores that this device holds no more as well: what was published is nobody's to take back.
        let usable = self.former.filter { present.isSuperset(of: $0.value.segmentNames) }
        parts = usable
        stores = publication.stores.filter { store in
            former?.isTrusted != true || usable[store.identifier] == nil || store.sequence != store.published
        }.map(\.identifier)
    }

    func upload(_ snapshot: StoreSnapshot) async throws(RemoteError) {
        let (store, state) = (snapshot.identifier, snapshot.state)
        let digests = StateDigests(of: state, store: store)
        try check(store, state, digests)
        let former = former[store].flatMap { present.isSuperset(of: $0.segmentNames) ? $0 : nil }
        if let former, former.digest == digests.state {
            parts[store] = former
            return
        }
        var base: Base?
        if let former { base = try await backend.base(of: former, store: store) }
        let draft = PartDraft(state, digests: digests, store: store, over: base, tailBytes: tailBytes)
        for (name, bytes) in draft.segments.sorted(by: { $0.key < $1.key }) {
            try await backend.ensure(name, bytes, isListed: present.contains(name))
            present.insert(name)
        }
        parts[store] = draft.part
        bases[store] = draft.base
    }

    private var tailBytes: Int {
        max(Self.leastTailBytes, min(Self.mostTailBytes, Self.allTails / max(1, publication.stores.count)))
    }

    /// Refuses what no reader would accept.
    private func check(_ store: String, _ state: StoreState, _ digests: StateDigests) throws(RemoteError) {
        guard (1...255).contains(store.utf8.count), store.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw RemoteError(.unsupported, "A store of this identifier can't be synchronised.")
        }
        guard state.entries.count <= EntryLimits.entries, digests.totalSize <= EntryLimits.storeBytes else {
            throw RemoteError(.full, "The store \(store) has grown larger than what is synchronised.")
        }
    }

    func finish() async throws(RemoteError) {
        let head = Head(
            account: account,
            origin: publication.origin,
            sequence: sequence,
            time: publication.time,
            device: publication.device,
            parts: parts
        )
        try await backend.publish(head, unlikeLength: formerLength, bases: bases)
        for origin in formerOrigins {
            // Not worth a failure: it is tried again, and does no harm until then.
            do { try await backend.retire(origin) } catch { return }
        }
    }
}
