// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
public import Replication
internal import Synchronization

extension BlobBackend {
    /// Looks what is new since a cursor.
    public func pull(
        after cursor: [UInt8]?, as origin: Origin, published count: UInt64
    ) async throws(RemoteError) -> any RemotePull {
        memory.pulls += 1
        memory.listed = nil
        forgetNews()
        if isThorough || memory.changedAt != nil { memory.segments = nil }
        try await checkPlace()
        let cursor = cursor.map(BlobCursor.init(decoding:))
        if cursor == nil { memory.forgetJoined() }
        if let cursor { memory.garbage.resume(cursor.observations) }
        let found = try await look(as: origin)
        let own = try await look(at: found.heads, as: origin, published: count, cursor)
        if memory.own.readsAnew { (memory.joinedHeads, memory.joinedParts, memory.passedOver) = ([], [:], [:]) }
        var known = memory.own.readsAnew ? [] : cursor?.heads ?? []
        // What was published before everything was to be downloaded anew is not here any more.
        if cursor != nil, !memory.own.readsAnew {
            known.formUnion(memory.joinedHeads)
            if let published = memory.published, published.isTrusted { known.insert(published.digest) }
        }
        return BlobPull(
            backend: self,
            account: found.account,
            found: found.heads,
            known: known,
            joinedParts: memory.joinedParts,
            passedOver: memory.passedOver,
            corrupt: memory.corrupt,
            ownPublication: own == .asPublished && isOutdated(found.heads.heads, known) ? .outdated : own,
            formerOwn: cursor?.own
        )
    }

    /// Looks at the heads, and at the markers where these may have become others: an account that is as it was costs
    /// one listing.
    private func look(as origin: Origin) async throws(RemoteError) -> (account: RemoteAccount, heads: FoundHeads) {
        let (known, before) = (isThorough ? nil : memory.account, memory.found)
        var account: RemoteAccount
        if let known { account = known } else { account = try await markedAccount() }
        var problems = try await readHeads(believing: !isThorough, as: origin)
        for folder in memory.fullFolders.sorted() {
            problems.append("The folder \(folder) holds too many files; some were not looked at.")
        }
        let own = memory.published?.digest
        let isChanged = memory.found.contains { before[$0.key]?.digest != $0.value.digest && $0.value.digest != own }
        if isChanged { (memory.changedAt, memory.segments) = (environment.time(), nil) }
        memory.doubtOwnSegments(environment.time(), isThorough: isThorough, since: before)
        let isOthers = memory.account == nil
        if isOthers || memory.isInDoubt(of: account, since: before, hasAsked: known == nil) {
            let identifiers = accountIdentifiers
            account = try await markedAccount()
            // Its parts were not made out yet.
            if accountIdentifiers != identifiers { return try await look(as: origin) }
        }
        let heads = memory.found.values.sorted { ($0.name.utf8.count, $0.name) < ($1.name.utf8.count, $1.name) }
        return (account, FoundHeads(heads, of: account, problems: problems))
    }

    /// Whether others have published what this device has taken in and not published, for a day. It never is at once:
    /// what was received is safe where it came from, and an answer to each message would be answered in turn.
    private func isOutdated(_ heads: [FoundHead], _ known: Set<Bits128>) -> Bool {
        guard let own = memory.published?.head else { return false }
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

    /// What became of this device's own head.
    private func look(
        at heads: FoundHeads,
        as origin: Origin,
        published count: UInt64,
        _ cursor: BlobCursor?
    ) async throws(RemoteError) -> OwnPublication {
        let found = heads.named(origin)
        switch memory.own.classify(found?.identity, as: origin, published: count, last: cursor?.own) {
        case .none: return try await isFormerThere(heads, origin, cursor?.own) ? .asPublished : .missing
        case .lost, .older, .inherited: return .missing
        case .foreign: return .foreign
        case .current:
            guard let found, found.isWhole else { return .missing }
            if memory.published == nil {
                memory.know(
                    BlobMemory.PublishedHead(
                        head: found.head, digest: found.digest, length: found.length, isTrusted: true))
            }
            return try await hasAllSegments(found.head) ? .asPublished : .missing
        }
    }

    /// Whether what the process before this one published is still there, or there was nothing.
    private func isFormerThere(
        _ heads: FoundHeads, _ origin: Origin, _ last: HeadIdentity?
    ) async throws(RemoteError) -> Bool {
        let isLost = memory.own.isFormerLost(as: origin, last: last) { origin in
            heads.named(origin).map { ($0.identity, $0.isWhole) }
        }
        if isLost { return false }
        guard memory.published == nil, let last, let former = heads.named(last.origin) else { return true }
        return try await hasAllSegments(former.head)
    }

    /// Whether what our head names is still there. Somebody whom our head had not reached may remove, minutes after they
    /// have replaced theirs, what both shared: so it is looked for once when others have written nothing for a while.
    private func hasAllSegments(_ head: Head) async throws(RemoteError) -> Bool {
        let now = environment.time()
        let isCalm = memory.changedAt.map { now < $0 || now - $0 > Self.busy } ?? false
        // An upload comes later than the look that found it necessary; the looks between them find the same.
        guard isThorough || isCalm || memory.lacksSegments || !memory.doubtfulSegments.isEmpty else { return true }
        if isCalm { memory.changedAt = nil }
        let isListed = try await listSegments().isSuperset(of: head.segmentNames)
        let isWhole = try await verifyDoubtful(head)
        memory.lacksSegments = !isListed || !isWhole
        return !memory.lacksSegments
    }

    /// Reads the segments of our head that may have become others.
    private func verifyDoubtful(_ head: Head) async throws(RemoteError) -> Bool {
        let doubtful = memory.doubtfulSegments
        memory.doubtfulSegments = []
        var areGood = true
        for name in head.segmentNames.intersection(doubtful).sorted() {
            if case .bytes = try await readSegment(name) { continue }
            areGood = false
            memory.segments?.remove(name)
        }
        return areGood
    }

    private static var busy: UInt64 { 600_000_000 }

    /// Remembers what was joined, and completes the cursor.
    func didJoin(
        _ result: HeadNews.Result, corrupt: [String: [Bits128: String]], formerOwn: HeadIdentity?
    ) async -> BlobCursor {
        memory.own.noteJoined()
        memory.joinedHeads = result.heads
        memory.joinedParts = result.states
        memory.passedOver = result.passedOver
        memory.corrupt = corrupt
        memory.forgetUnnamed()
        forgetNews()
        memory.garbage.note(memory.found.values.map(\.seen), time: environment.time())
        await sweep()
        var cursor = BlobCursor()
        cursor.heads = result.heads.subtracting(result.headsWithGaps)
        // Nobody would hear of these any more after a restart: the next process reads them again.
        for found in memory.found.values
        where found.head.parts.contains(where: { corrupt[$0]?[$1.digest] != nil }) {
            cursor.heads.remove(found.digest)
        }
        cursor.own = memory.own.published ?? formerOwn
        cursor.observations = memory.garbage.observations
        return cursor
    }
}

/// What was new when a pull looked.
actor BlobPull<Storage: BlobStorage>: RemotePull {
    nonisolated let account: RemoteAccount
    nonisolated let devices: [Origin: RemoteDevice]
    nonisolated let stores: [String]
    nonisolated let ownPublication: OwnPublication
    nonisolated var problems: [String] { problemList.withLock(\.self) }

    private nonisolated let problemList: Mutex<[String]>
    private let backend: BlobBackend<Storage>
    /// Where the backend's is.
    nonisolated var unownedExecutor: UnownedSerialExecutor { backend.unownedExecutor }
    private let formerOwn: HeadIdentity?
    private var news: HeadNews
    /// Of each store the states that are new, by their digest, each as one or more devices have cut it.
    private let parts: [String: [Bits128: [Head.Part]]]

    init(
        backend: BlobBackend<Storage>,
        account: RemoteAccount,
        found: FoundHeads,
        known: Set<Bits128>,
        joinedParts: [String: Set<Bits128>],
        passedOver: [String: Set<Bits128>],
        corrupt: [String: [Bits128: String]],
        ownPublication: OwnPublication,
        formerOwn: HeadIdentity?
    ) {
        self.backend = backend
        self.account = account
        self.ownPublication = ownPublication
        self.formerOwn = formerOwn
        let news = HeadNews(
            found.heads.map(\.seen), known: known, joined: joinedParts, passedOver: passedOver,
            corrupt: corrupt)
        self.news = news
        stores = news.stores
        problemList = Mutex(found.problems + news.corrupt.values.flatMap(\.values).sorted())
        devices = Self.devices(found.heads)
        var parts: [String: [Bits128: [Head.Part]]] = [:]
        for found in found.heads where !known.contains(found.digest) {
            for (store, part) in found.head.parts where news.states[store]?.contains(part.digest) == true {
                parts[store, default: [:]][part.digest, default: []].append(part)
            }
        }
        self.parts = parts
    }

    private static func devices(_ heads: [FoundHead]) -> [Origin: RemoteDevice] {
        var latest: [Origin: Head] = [:]
        for found in heads where found.head.sequence >= latest[found.head.origin]?.sequence ?? 0 {
            latest[found.head.origin] = found.head
        }
        return latest.mapValues(\.device)
    }

    func change(of store: String) async throws(RemoteError) -> RemoteChange {
        // What was read before is joined.
        await backend.forgetNews()
        guard let parts = parts[store] else { return RemoteChange(state: StoreState(), isComplete: true) }
        var (joined, lacking) = (JoinedStates(), Set<Bits128>())
        for (digest, parts) in parts.sorted(by: { $0.key < $1.key }) {
            switch try await read(parts, of: store) {
            case .state(let state):
                joined.join(state)
                news.noteRead(digest, of: store)
            case .corrupt(let sentence):
                report(sentence)
                news.noteCorrupt(digest, of: store, sentence)
            case .lacking(let sentence):
                if let sentence { report(sentence) }
                lacking.insert(digest)
            }
        }
        let isComplete = news.passOver(lacking, of: store, read: joined.state.vector)
        return RemoteChange(joined, isComplete: isComplete)
    }

    /// Reads a state, of which it is enough that one of those who hold it can be read.
    private func read(_ parts: [Head.Part], of store: String) async throws(RemoteError) -> PartContent {
        var (isLacking, sentence): (Bool, String?) = (false, nil)
        for part in parts {
            switch try await backend.readState(of: part, store: store) {
            case .state(let state): return .state(state)
            case .lacking(let clause): (isLacking, sentence) = (true, sentence ?? clause)
            case .corrupt(let clause): sentence = sentence ?? clause
            }
        }
        return isLacking ? .lacking(sentence) : .corrupt(sentence ?? "")
    }

    private func report(_ sentence: String) {
        problemList.withLock { if !$0.contains(sentence) { $0.append(sentence) } }
    }

    func finish(joined stores: Set<String>) async -> PullResult {
        let result = news.finish(joined: stores)
        let cursor = await backend.didJoin(result, corrupt: news.corrupt, formerOwn: formerOwn)
        return PullResult(cursor: cursor.encoded(), isComplete: result.isComplete)
    }
}

extension FoundHead {
    /// What decisions are made on.
    var seen: SeenHead {
        SeenHead(identity, under: name, isWhole: isWhole, states: head.states, segments: head.segmentNames)
    }
}
