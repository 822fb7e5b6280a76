// SPDX-License-Identifier: Apache-2.0

// What an upload asks of the storage: how others have cut what is there, and putting segments and heads in their places.

internal import BackendSupport
internal import PropertyList
public import Replication
internal import Sealing

extension BlobBackend {
    /// Begins to upload this device's state. Nothing that the look before has seen is asked for again
    /// (docs/decisions/0018).
    public func push(_ publication: Publication) async throws(RemoteError) -> any RemotePush {
        if protection.move != nil { throw RemoteError.moving }
        let (account, names, own) = try await present(under: publication.origin)
        let wrapping = try wrapping
        guard account.isNamed(publication.account), let identifier = Bits128(publication.account) else {
            throw RemoteError(.reset, "There is another account here than the one that is signed in.")
        }
        if let own, account.isNamed(own.head.account.description),
            !memory.own.mayReplace(own.identity, of: publication.origin)
        {
            throw RemoteError(
                .unavailable, "A clone publishes under this device's origin, which the next poll replaces.")
        }
        let formerOrigins = OwnHeads.retired(
            publication.formerOrigins, present: names, as: publication.origin)
        let former = try await formerHead(own, formerOrigins, of: account)
        return BlobPush(
            backend: self,
            publication: publication,
            account: identifier,
            wrapping: wrapping,
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
    ) async throws(RemoteError) -> BlobMemory.PublishedHead? {
        if let published = memory.published { return published }
        if let own, account.isNamed(own.head.account.description) { return own.asPublished }
        for origin in formerOrigins.reversed() {
            if let found = try await readHead(of: origin), account.isNamed(found.head.account.description) {
                return found.asPublished
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
        return StateContent(entries: entries, vector: part.vector)
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
        memory.damagedSegments.remove(name)
        memory.segmentVersions[name] = nil
        memory.segments?.insert(name)
        memory.garbage.noteLength(bytes.count, of: name)
    }

    /// Writes a head under this device's own name.
    func publish(
        _ head: Head, unlikeLength length: Int?, present: Set<Bits128>
    ) async throws(RemoteError) {
        try checkOpen()
        let written = try await write(head, present)
        let bytes = try wrapping.bytes(of: written, unlikeLength: length, random: environment.random)
        let digest = Head.digest(of: bytes)
        memory.own.noteWriting(digest)
        try await storage.put(BlobName.head(head.origin), bytes)
        // What was published before a download began anew has nothing in its place until it was read again.
        let former = memory.published.flatMap { $0.isTrusted ? $0.head.segmentNames : nil } ?? []
        memory.garbage.noteReplaced(
            former, by: written.head.segmentNames(with: head), time: environment.time())
        memory.notePublished(
            BlobMemory.PublishedHead(
                head: written.head.with(head.parts), digest: digest, length: bytes.count, isTrusted: true))
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
        let (bytes, name) = try wrapping.named(Index.encode(parts))
        try await ensure(name, bytes, isListed: present.contains(name))
        memory.indexes[name] = head.parts
        return try await write(head, over: head.parts, named: name)
    }

    private func write(
        _ head: Head, over index: [String: Head.Part], named name: Bits128
    ) async throws(RemoteError) -> WrittenHead {
        let wrapping = try wrapping
        var written = WrittenHead(
            head: head, absent: Set(index.keys.filter { head.parts[$0] == nil }), parts: [:])
        written.head.index = name
        written.head.parts = [:]
        for (store, part) in head.parts where index[store] != part {
            if let part = index[store].flatMap({ part.written(over: $0, wrapping) }) {
                written.parts[store] = part
            } else {
                written.parts[store] = part.written(over: try await contextBase(of: part))
            }
        }
        return written
    }

    /// What a part's segment of a version vector has.
    func contextBase(of part: Head.Part) async throws(RemoteError) -> VersionVector {
        var problems: [String] = []
        guard let vector = try await readVector(part.vectorSegment, &problems) else {
            throw RemoteError(.unavailable, "The file s/\(part.vectorSegment) is not there; it is looked at first.")
        }
        return vector
    }

    /// Notes what a draft has written, and sees to it that it is there.
    func ensure(_ draft: PartDraft<Wrapping>, present: Set<Bits128>) async throws(RemoteError) {
        for (name, bytes) in draft.segments.sorted(by: { $0.key < $1.key }) {
            try await ensure(name, bytes, isListed: present.contains(name))
            memory.hasFolded = memory.hasFolded || bytes.count > IndexLimits.headBytes
        }
        memory.contents.merge(draft.contents) { $1 }
        if draft.segments[draft.part.vectorSegment] != nil {
            memory.vectors[draft.part.vectorSegment] = draft.part.vector
        }
    }

    /// Removes the head of an origin under which this device writes no more, once everything in it is joined here.
    /// One that is later than all that this device published is of somebody who goes on under the origin.
    func retire(_ origin: Origin, upTo sequence: UInt64) async throws(RemoteError) {
        let content = try await storage.get(BlobName.head(origin), limit: try wrapping.headLimit, unless: nil)
        guard case .content(let bytes, _) = content else { return }
        let (digest, wrapping) = (Head.digest(of: bytes), try wrapping)
        do throws(BlobFlaw) {
            let head = try wrapping.head(bytes).head
            let found = HeadIdentity(origin: origin, digest: digest, sequence: head.sequence)
            guard memory.own.mayRetire(found, upTo: sequence, joined: memory.joinedHeads) else { return }
        } catch {
            if error == .tooNew || error == .otherKey || !memory.own.mayRetireUnreadable(origin, environment.time()) {
                return
            }
        }
        try await storage.delete(BlobName.head(origin))
        memory.garbage.forget(origin.description)
    }
}

/// What a state has, however it is cut.
struct StateContent: Equatable {
    /// The digests of the entries.
    let entries: [Key: Bits128]
    let vector: VersionVector
}

/// When an index is written anew: a head costs that much each time, an index once in a while.
enum IndexLimits {
    static let headBytes = 3 << 10
    /// Not together with a bucket, unless it can't wait.
    static let headBytesWithSegment = 12 << 10
}

extension FoundHead {
    /// As the head that this device published, if that is what it seems to be.
    fileprivate var asPublished: BlobMemory.PublishedHead {
        BlobMemory.PublishedHead(head: head, digest: digest, length: length, isTrusted: false)
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
