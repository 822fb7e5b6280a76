// SPDX-License-Identifier: Apache-2.0

// An upload writes segments, then the head that names them, and then removes the heads that this one replaces. It may
// be interrupted anywhere: the last head has all its segments, and there may be segments that no head names.

internal import BackendSupport
internal import PropertyList
internal import Replication
internal import Sealing

/// An upload under way.
actor BlobPush<Storage: BlobStorage>: RemotePush {
    nonisolated let stores: [String]

    private let backend: BlobBackend<Storage>
    /// The backend's executor.
    nonisolated var unownedExecutor: UnownedSerialExecutor { backend.unownedExecutor }
    private let publication: Publication
    private let account: Bits128
    private let wrapping: Wrapping
    private let formerOrigins: [Origin]
    private let sequence: UInt64
    private let formerLength: Int?
    /// The parts of the head that was published before.
    private let former: [String: Head.Part]
    /// The parts of other devices' heads, by store.
    private let foreign: [String: [Head.Part]]
    /// The names of the segments in the remote.
    private var present: Set<Bits128>
    /// The parts to publish.
    private var parts: [String: Head.Part]
    /// The drafts to write after the head, if ``Rule/segmentsFirst`` is off.
    private var late: [PartDraft<Wrapping>] = []
    /// The stores whose state was uploaded.
    private var uploaded: Set<String> = []

    init(
        backend: BlobBackend<Storage>,
        publication: Publication,
        account: Bits128,
        wrapping: Wrapping,
        own: FoundHead?,
        former: PublishedHead?,
        formerOrigins: [Origin],
        foreign: [String: [Head.Part]],
        present: Set<Bits128>
    ) {
        self.foreign = foreign
        self.backend = backend
        self.publication = publication
        self.account = account
        self.wrapping = wrapping
        self.formerOrigins = formerOrigins
        self.present = present
        self.former = former?.head.parts ?? [:]
        formerLength = own?.length
        sequence = OwnHeads.nextSequence(
            as: publication.origin, there: own?.identity, published: former?.identity,
            count: publication.counts[publication.origin] ?? 0)
        // These include stores that the device no longer holds: what was published is never withdrawn.
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
        let content = StateContent(entries: digests.entries, vector: state.vector)
        if let same = try await sharedPart(of: store, digests.state, content) {
            parts[store] = same
            return
        }
        let (base, vector) = try await backend.base(for: digests, of: store, among: candidates(of: store))
        let draft = PartDraft(
            state, digests: digests, store: store, over: base.part, contents: base.contents,
            contextBase: vector, limits: limits(besides: store), wrapping)
        if Rule.segmentsFirst.isOn { try await backend.ensure(draft, present: present) } else { late.append(draft) }
        present.formUnion(draft.segments.keys)
        parts[store] = draft.part
    }

    private func candidates(of store: String) -> [StatePart] {
        StatePart.candidates(own: former[store], others: foreign[store] ?? [], present: present)
    }

    /// Returns the way of cutting a state that all devices prefer, among those in the remote; `nil` if there is none.
    /// - Parameter content: the state's content; `nil` to read it from this device's published part.
    private func sharedPart(
        of store: String, _ digest: Bits128, _ content: StateContent? = nil
    ) async throws(RemoteError) -> Head.Part? {
        let own = former[store].flatMap { present.isSuperset(of: $0.segmentNames) && $0.digest == digest ? $0 : nil }
        return try await backend.sharedPart(digest, content, of: store, own: own, among: candidates(of: store))
    }

    private func limits(besides store: String) -> DraftLimits {
        let others = parts.filter { $0.key != store && !$0.value.base.isEmpty }.values
        return DraftLimits(
            stores: max(parts.count, publication.stores.count),
            otherTails: others.reduce(0) { $0 + $1.roughTailBytes })
    }

    /// Refuses a store that no reader would accept.
    private func check(_ store: String, _ state: StoreState, _ digests: StateDigests) throws(RemoteError) {
        guard store.isStoreIdentifier else {
            throw RemoteError(.unsupported, "A store of this identifier can't be synchronised.")
        }
        guard state.entries.count <= StoreBounds.entries, digests.totalSize <= StoreBounds.bytes else {
            throw RemoteError(.full, "The store \(store) has grown too large to be synchronised.")
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
            // The push doesn't fail if this does: the next one tries again, and the head does no harm until then.
            do { try await backend.retire(origin, upTo: publication.counts[origin] ?? 0) } catch { return }
        }
    }
}

extension StoreState {
    /// The state without origins that have no entry left, which must never be published.
    fileprivate var forgettingOrigins: StoreState {
        let living = Set(entries.values.map(\.stamp.origin))
        return StoreState(entries: entries, vector: vector.filter { living.contains($0.origin) })
    }
}

extension Head.Part {
    /// The approximate length of the tail, in bytes.
    fileprivate var roughTailBytes: Int {
        tail.reduce(removed.count * 16) { $0 + $1.key.string.utf8.count + 16 + ($1.value.value?.count ?? 0) }
    }
}
