// SPDX-License-Identifier: Apache-2.0

// An upload: segments first, then the head that names them, then the heads that this one replaces. It may be cut
// anywhere: what is left is the head before, with all its segments, and perhaps segments that nobody names.

internal import PropertyList
internal import StoreEngine
public import SyncEngine

extension BlobBackend {
    /// Begins to upload this device's state. Nothing that the look before has seen is asked for again
    /// (docs/decisions/0018).
    public func push(_ publication: Publication) async throws(RemoteError) -> any RemotePush {
        let (account, names, own) = try await present(under: publication.origin)
        guard account.isNamed(publication.account), let identifier = Bits128(publication.account) else {
            throw RemoteError(.reset, "There is another account here than the one that is signed in.")
        }
        if let own, account.isNamed(own.head.account.description),
            !memory.mayReplace(own, of: publication.origin)
        {
            throw RemoteError(.unavailable, "Somebody else writes under this device's name; it is looked at first.")
        }
        let dead = Rule.deadHeads.isOn ? publication.formerOrigins : names.sorted().compactMap { Origin($0[...]) }
        let formerOrigins = dead.filter { $0 != publication.origin && names.contains($0.description) }
        let former = try await formerHead(own, formerOrigins, of: account)
        return BlobPush(
            backend: self,
            publication: publication,
            account: identifier,
            own: own,
            former: former,
            formerOrigins: formerOrigins,
            foreign: foreignParts(besides: publication.origin, account),
            present: try await knownSegments()
        )
    }

    /// Whose place it is, the names of heads in it and the one under an origin's name: as the look has seen them that
    /// this push follows, or else as they are now.
    private func present(
        under origin: Origin
    ) async throws(RemoteError) -> (account: RemoteAccount, names: Set<String>, own: FoundHead?) {
        try await checkPlace()
        if let names = memory.listed, let account = memory.account {
            memory.listed = nil
            return (account, names, memory.found[origin.description])
        }
        memory.segments = nil
        let account = try await markedAccount()
        let names = Set(try await storage.list(BlobName.heads).map(\.name))
        return (account, names, try await readHead(of: origin))
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

    /// How other devices have cut what they hold, of what is there whole.
    func foreignParts(besides origin: Origin, _ account: RemoteAccount) -> [String: [Head.Part]] {
        var parts: [String: [Head.Part]] = [:]
        for (_, found) in memory.found.sorted(by: { $0.key < $1.key })
        where found.head.origin != origin && account.isNamed(found.head.account.description) {
            for (store, part) in found.head.parts where parts[store]?.contains(part) != true {
                parts[store, default: []].append(part)
            }
        }
        return parts
    }

    /// Whether segments are there, and whole.
    func areGood(_ names: [Bits128]) async throws(RemoteError) -> Bool {
        for name in names where !memory.goodSegments.contains(name) {
            guard case .bytes = try await readSegment(name) else { return false }
        }
        return true
    }

    /// What a part has; `nil` if not all of it can be read.
    func content(of part: Head.Part, store: String) async throws(RemoteError) -> StateContent? {
        guard var entries = try await contents(of: part.base, store: store) else { return nil }
        for key in part.removed { entries[key] = nil }
        entries.merge(StateDigests(of: StoreState(entries: part.tail), store: store).entries) { $1 }
        return StateContent(entries: entries, context: part.context)
    }

    /// How many of the segments of a base would have to be read.
    func unknownSegments(of base: [BaseSegment]) -> Int {
        base.names.count { memory.contents[$0] == nil }
    }

    /// Sees to it that a segment is there, and whole.
    func ensure(_ name: Bits128, _ bytes: [UInt8], isListed: Bool) async throws(RemoteError) {
        if isListed {
            if memory.goodSegments.contains(name) { return }
            if case .bytes = try await readSegment(name) { return }
        }
        try await storage.put(BlobName.segment(name), bytes)
        memory.goodSegments.insert(name)
        memory.segments?.insert(name)
        memory.superseded.noteLength(bytes.count, of: name)
    }

    /// Writes a head under this device's own name.
    func publish(
        _ head: Head, unlikeLength length: Int?, present: Set<Bits128>
    ) async throws(RemoteError) {
        try checkOpen()
        let written = try await write(head, present)
        let bytes = written.encoded(unlikeLength: length)
        guard bytes.count <= Head.limit else {
            throw RemoteError(.full, "The account has too many stores for one device's part of it.")
        }
        let digest = Head.digest(of: bytes)
        memory.noteWriting(digest)
        try await storage.put(BlobName.head(head.origin), bytes)
        let former = memory.published?.head.segmentNames ?? []
        memory.superseded.note(former, now: written.head.segmentNames(with: head), time: environment.time())
        memory.published = BlobMemory.PublishedHead(
            head: written.head.with(head.parts), digest: digest, length: bytes.count, isTrusted: true)
        memory.lacksSegments = false
        await sweep()
    }

    /// Writes a head over the index over which it is shortest, and a new index if it is long all the same.
    private func write(_ head: Head, _ present: Set<Bits128>) async throws(RemoteError) -> WrittenHead {
        var best: (written: WrittenHead, length: Int)?
        let indexes = memory.indexes.filter { present.contains($0.key) }.sorted { $0.key < $1.key }
        for (name, parts) in [(.zero, [:])] + indexes {
            let written = try await write(head, over: parts, named: name)
            let length = written.encoded().count
            if best.map({ length < $0.length }) ?? true { best = (written, length) }
        }
        let most = memory.hasFolded ? IndexLimits.headBytesWithSegment : IndexLimits.headBytes
        memory.hasFolded = false
        if let best, best.length <= most { return best.written }
        var parts: [String: WrittenPart] = [:]
        for (store, part) in head.parts { parts[store] = part.written(over: try await contextBase(of: part)) }
        let bytes = Index.encode(parts)
        let name = Bits128(digestOf: bytes)
        try await ensure(name, bytes, isListed: present.contains(name))
        memory.indexes[name] = head.parts
        return try await write(head, over: head.parts, named: name)
    }

    private func write(
        _ head: Head, over index: [String: Head.Part], named name: Bits128
    ) async throws(RemoteError) -> WrittenHead {
        var written = WrittenHead(
            head: head, absent: Set(index.keys.filter { head.parts[$0] == nil }), parts: [:])
        written.head.index = name
        written.head.parts = [:]
        for (store, part) in head.parts where index[store] != part {
            if let part = index[store].flatMap(part.written(over:)) {
                written.parts[store] = part
            } else {
                written.parts[store] = part.written(over: try await contextBase(of: part))
            }
        }
        return written
    }

    /// What a part's segment of a context has.
    func contextBase(of part: Head.Part) async throws(RemoteError) -> Context {
        var problems: [String] = []
        guard let context = try await readContext(part.contextSegment, &problems) else {
            throw RemoteError(.unavailable, "The file s/\(part.contextSegment) is not there; it is looked at first.")
        }
        return context
    }

    /// Notes what a draft has written, and sees to it that it is there.
    func ensure(_ draft: PartDraft, present: Set<Bits128>) async throws(RemoteError) {
        for (name, bytes) in draft.segments.sorted(by: { $0.key < $1.key }) {
            try await ensure(name, bytes, isListed: present.contains(name))
            memory.hasFolded = memory.hasFolded || bytes.count > IndexLimits.headBytes
        }
        memory.contents.merge(draft.contents) { $1 }
        if draft.segments[draft.part.contextSegment] != nil {
            memory.contexts[draft.part.contextSegment] = draft.part.context
        }
    }

    /// Removes the head of an origin under which this device writes no more, once everything in it is joined here.
    /// One that is later than all that this device published is of somebody who goes on under the origin.
    func retire(_ origin: Origin, upTo sequence: UInt64) async throws(RemoteError) {
        let content = try await storage.get(BlobName.head(origin), limit: Head.limit, unless: nil)
        guard case .content(let bytes, _) = content else { return }
        let digest = Head.digest(of: bytes)
        do throws(BlobFlaw) {
            let head = try WrittenHead(decoding: bytes).head
            memory.unreadable[origin] = nil
            guard head.sequence <= sequence || !Rule.deadHeads.isOn else { return }
            guard memory.joinedHeads.contains(digest) || memory.held.contains(digest) else { return }
        } catch {
            if error == .tooNew || !isUnreadableForADay(origin) { return }
        }
        try await storage.delete(BlobName.head(origin))
    }
}

/// What a state has, however it is cut.
struct StateContent: Equatable {
    /// The digests of the entries.
    let entries: [Key: Bits128]
    let context: Context
}

extension BlobBackend {
    /// A head that is torn now may be whole later, with what nobody else has.
    private func isUnreadableForADay(_ origin: Origin) -> Bool {
        let now = environment.time()
        let since = min(memory.unreadable[origin] ?? now, now)
        memory.unreadable[origin] = since
        return now - since >= Observations.day
    }
}

/// When an index is written anew: a head costs that much each time, an index once in a while.
enum IndexLimits {
    static let headBytes = 3 << 10
    /// Not together with a bucket, unless it can't wait.
    static let headBytesWithSegment = 12 << 10
}

extension StoreState {
    /// Without the origins of which no entry is left: what must never be published.
    fileprivate var forgettingOrigins: StoreState {
        let living = Set(entries.values.map(\.stamp.origin))
        return StoreState(entries: entries, context: context.filter { living.contains($0.origin) })
    }
}

extension Head {
    fileprivate func with(_ parts: [String: Part]) -> Head {
        var head = self
        head.parts = parts
        return head
    }

    fileprivate func segmentNames(with head: Head) -> Set<Bits128> { with(head.parts).segmentNames }
}

extension Head.Part {
    /// About what the tail takes.
    fileprivate var roughTailBytes: Int {
        tail.reduce(removed.count * 16) { $0 + $1.key.string.utf8.count + 16 + ($1.value.value?.count ?? 0) }
    }
}

extension [Bits128] {
    fileprivate static func <= (a: Self, b: Self) -> Bool { !b.lexicographicallyPrecedes(a) }
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
    /// How others have cut what they hold.
    private let foreign: [String: [Head.Part]]
    /// The segments that are there.
    private var present: Set<Bits128>
    /// What is going to be published.
    private var parts: [String: Head.Part]
    /// What is written after the head, where that is tried.
    private var late: [PartDraft] = []
    /// The stores whose state was given.
    private var uploaded: Set<String> = []

    /// A base of which more would have to be read is not worth it.
    private static var mostUnknownSegments: Int { 4 }
    private static var mostCandidates: Int { 8 }

    init(
        backend: BlobBackend<Storage>,
        publication: Publication,
        account: Bits128,
        own: FoundHead?,
        former: (head: Head, isTrusted: Bool)?,
        formerOrigins: [Origin],
        foreign: [String: [Head.Part]],
        present: Set<Bits128>
    ) {
        self.foreign = foreign
        self.backend = backend
        self.publication = publication
        self.account = account
        self.formerOrigins = formerOrigins
        self.present = present
        self.former = former?.head.parts ?? [:]
        formerLength = own?.length
        let sequences = [own?.head, former?.head].compactMap { $0?.origin == publication.origin ? $0?.sequence : nil }
        sequence = max((sequences.max() ?? 0) &+ 1, publication.counts[publication.origin] ?? 0)
        // Stores that this device holds no more as well: what was published is nobody's to take back.
        let usable = self.former.filter { present.isSuperset(of: $0.value.segmentNames) }
        parts = usable
        stores = publication.stores.filter { store in
            former?.isTrusted != true || usable[store.identifier] == nil || store.sequence != store.published
        }.map(\.identifier)
    }

    func upload(_ snapshot: StoreSnapshot) async throws(RemoteError) {
        let store = snapshot.identifier
        let state = Rule.keepOrigins.isOn ? snapshot.state : snapshot.state.forgettingOrigins
        let digests = StateDigests(of: state, store: store)
        try check(store, state, digests)
        uploaded.insert(store)
        let content = StateContent(entries: digests.entries, context: state.context)
        if let same = try await sharedPart(of: store, digests.state, content) {
            parts[store] = same
            return
        }
        let (base, contents) = try await bestBase(of: store, digests)
        let draft = PartDraft(
            state, digests: digests, store: store, over: base, contents: contents,
            contextBase: try await contextBase(of: base), limits: limits(besides: store))
        if Rule.segmentsFirst.isOn { try await backend.ensure(draft, present: present) } else { late.append(draft) }
        present.formUnion(draft.segments.keys)
        parts[store] = draft.part
    }

    private func contextBase(of part: Head.Part?) async throws(RemoteError) -> Context {
        guard let part else { return Context() }
        return try await backend.contextBase(of: part)
    }

    /// The ways in which a store is cut already, this device's own first, of which all segments are there.
    private func candidates(of store: String) -> [Head.Part] {
        let all = [former[store]].compactMap(\.self) + (foreign[store] ?? [])
        return Array(all.filter { present.isSuperset(of: $0.segmentNames) }.prefix(Self.mostCandidates))
    }

    /// The way of cutting a state that all who hold it prefer, of those that are there.
    /// - Parameter content: what the state has; `nil`: what this device published of it last.
    private func sharedPart(
        of store: String, _ digest: Bits128, _ content: StateContent? = nil
    ) async throws(RemoteError) -> Head.Part? {
        let own = former[store].flatMap { present.isSuperset(of: $0.segmentNames) && $0.digest == digest ? $0 : nil }
        var (shared, content) = (own, content)
        for part in candidates(of: store) where part.digest == digest && part != shared {
            if let shared, !part.isPreferable(to: shared) { continue }
            guard try await backend.areGood(part.segmentNames) else { continue }
            // Who says that a part has this state may be mistaken, and whoever took it over would be, too.
            if content == nil, let own { content = try await backend.content(of: own, store: store) }
            guard let content, try await backend.content(of: part, store: store) == content else { continue }
            shared = part
        }
        return shared
    }

    /// The base over which the tail is smallest; among equals the one with the smallest names, as on other devices.
    private func bestBase(
        of store: String, _ digests: StateDigests
    ) async throws(RemoteError) -> (Head.Part?, [Key: Bits128]) {
        var best: (part: Head.Part, contents: [Key: Bits128], bytes: Int)?
        for part in candidates(of: store) {
            if best != nil, await backend.unknownSegments(of: part.base) > Self.mostUnknownSegments { continue }
            guard let contents = try await backend.contents(of: part.base, store: store) else { continue }
            let bytes = PartDraft.tailBytes(of: digests, over: contents)
            if let best, best.bytes < bytes || (best.bytes == bytes && best.part.base.names <= part.base.names) {
                continue
            }
            best = (part, contents, bytes)
        }
        return (best?.part, best?.contents ?? [:])
    }

    private func limits(besides store: String) -> DraftLimits {
        let others = parts.filter { $0.key != store && !$0.value.base.isEmpty }.values
        return DraftLimits(
            stores: max(parts.count, publication.stores.count),
            otherTails: others.reduce(0) { $0 + $1.roughTailBytes })
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
        for (store, part) in parts where !uploaded.contains(store) {
            if let shared = try await sharedPart(of: store, part.digest) { parts[store] = shared }
        }
        let head = Head(
            account: account,
            origin: publication.origin,
            sequence: sequence,
            time: publication.time,
            device: publication.device,
            parts: parts
        )
        try await backend.publish(head, unlikeLength: formerLength, present: present)
        for draft in late { try await backend.ensure(draft, present: []) }
        for origin in formerOrigins {
            // Not worth a failure: it is tried again, and does no harm until then.
            do { try await backend.retire(origin, upTo: publication.counts[origin] ?? 0) } catch { return }
        }
    }
}
