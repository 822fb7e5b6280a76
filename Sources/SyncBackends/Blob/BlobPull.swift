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
        if isThorough || memory.changedAt != nil { memory.segments = nil }
        try await checkPlace()
        let cursor = cursor.map(BlobCursor.init(decoding:))
        if cursor == nil { memory.forgetJoined() }
        if let cursor, memory.observations.time == 0 { memory.observations = cursor.observations }
        let found = try await look(as: origin)
        var own = try await look(at: found.heads.named(origin), as: origin, published: count, cursor)
        if own == .asPublished, isFormerLost(found.heads, origin, cursor) { own = .missing }
        var known = cursor?.heads ?? []
        // What was published before everything was to be downloaded anew is not here any more.
        if cursor != nil {
            known.formUnion(memory.joinedHeads)
            if let published = memory.published, published.isTrusted { known.insert(published.digest) }
        }
        return BlobPull(
            backend: self,
            account: found.account,
            found: found.heads,
            known: known,
            joinedParts: memory.joinedParts,
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
        if memory.isInDoubt(of: account, since: before, hasAsked: known == nil) {
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
        let now = environment.time()
        let age = now > own.time ? now - own.time : own.time - now
        guard age >= Observations.day else { return false }
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
        at found: FoundHead?,
        as origin: Origin,
        published count: UInt64,
        _ cursor: BlobCursor?
    ) async throws(RemoteError) -> OwnPublication {
        switch memory.classify(found, origin, published: count, cursor) {
        case .none: return .asPublished
        case .lost, .older, .inherited: return .missing
        case .foreign: return .foreign
        case .current:
            guard let found, found.isWhole else { return .missing }
            if memory.published == nil {
                memory.published = BlobMemory.PublishedHead(
                    head: found.head,
                    digest: found.digest,
                    length: found.length,
                    isTrusted: true
                )
            }
            return try await hasAllSegments(found.head) ? .asPublished : .missing
        }
    }

    /// Whether nothing was published under the present origin yet, and what was under a former one is there no more.
    private func isFormerLost(_ heads: FoundHeads, _ origin: Origin, _ cursor: BlobCursor?) -> Bool {
        guard let former = cursor?.own, former.origin != origin, memory.published == nil, heads.named(origin) == nil
        else { return false }
        guard let found = heads.named(former.origin), found.isWhole else { return true }
        return found.head.sequence < former.sequence
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
        _ cursor: BlobCursor, parts: [String: Set<Bits128>], corrupt: [String: [Bits128: String]],
        formerOwn: BlobCursor.Own?
    ) async -> BlobCursor {
        memory.joinedHeads = cursor.heads
        memory.joinedParts = parts
        memory.corrupt = corrupt
        memory.forgetUnnamed()
        memory.latest.note(memory.found.values, time: environment.time())
        await sweep()
        var cursor = cursor
        // Nobody would hear of these any more after a restart: the next process reads them again.
        for found in memory.found.values
        where found.head.parts.contains(where: { corrupt[$0]?[$1.digest] != nil }) {
            cursor.heads.remove(found.digest)
        }
        cursor.own = formerOwn
        if let published = memory.published {
            cursor.own = BlobCursor.Own(
                origin: published.head.origin, digest: published.digest, sequence: published.head.sequence)
        }
        cursor.observations = memory.observations
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
    private let heads: [FoundHead]
    private let formerOwn: BlobCursor.Own?
    /// Heads that were joined before.
    private let known: Set<Bits128>
    /// The digests of states that were joined before.
    private let joinedParts: [String: Set<Bits128>]
    /// Of each store the states that are new, by their digest, each as one or more devices have cut it.
    private let news: [String: [Bits128: [Head.Part]]]
    /// Of each store the digests of the states that devices publish: others are in copies only.
    private let published: [String: Set<Bits128>]
    /// The digests of what was read, or need not be.
    private var settled: [String: Set<Bits128>] = [:]
    /// What is wrong with what makes no sense.
    private var corrupt: [String: [Bits128: String]] = [:]

    init(
        backend: BlobBackend<Storage>,
        account: RemoteAccount,
        found: FoundHeads,
        known: Set<Bits128>,
        joinedParts: [String: Set<Bits128>],
        corrupt: [String: [Bits128: String]],
        ownPublication: OwnPublication,
        formerOwn: BlobCursor.Own?
    ) {
        self.backend = backend
        self.account = account
        self.ownPublication = ownPublication
        self.formerOwn = formerOwn
        self.known = known
        heads = found.heads
        for found in found.heads where !corrupt.isEmpty && known.contains(found.digest) {
            for (store, part) in found.head.parts {
                guard let sentence = corrupt[store]?[part.digest] else { continue }
                self.corrupt[store, default: [:]][part.digest] = sentence
            }
        }
        problemList = Mutex(found.problems + self.corrupt.values.flatMap(\.values).sorted())
        devices = Self.devices(found.heads)
        var joined = joinedParts
        for found in found.heads where known.contains(found.digest) {
            // Somebody else may have published what one's head only claims to have.
            for (store, part) in found.head.parts where self.corrupt[store]?[part.digest] == nil {
                joined[store, default: []].insert(part.digest)
            }
        }
        self.joinedParts = joined
        news = Self.news(found.heads.filter { !known.contains($0.digest) }, besides: joined)
        stores = news.keys.sorted()
        published = Self.news(found.heads.filter { !$0.isCopy }, besides: [:]).mapValues { Set($0.keys) }
    }

    private static func devices(_ heads: [FoundHead]) -> [Origin: RemoteDevice] {
        var latest: [Origin: Head] = [:]
        for found in heads where found.head.sequence >= latest[found.head.origin]?.sequence ?? 0 {
            latest[found.head.origin] = found.head
        }
        return latest.mapValues(\.device)
    }

    private static func news(
        _ heads: [FoundHead],
        besides joined: [String: Set<Bits128>]
    ) -> [String: [Bits128: [Head.Part]]] {
        var news: [String: [Bits128: [Head.Part]]] = [:]
        for found in heads {
            for (store, part) in found.head.parts where joined[store]?.contains(part.digest) != true {
                news[store, default: [:]][part.digest, default: []].append(part)
            }
        }
        return news
    }

    func change(of store: String) async throws(RemoteError) -> RemoteChange {
        guard let news = news[store] else { return RemoteChange(state: StoreState(), isComplete: true) }
        var joined = JoinedStates()
        var lacking: [(digest: Bits128, vector: VersionVector)] = []
        for (digest, parts) in news.sorted(by: { $0.key < $1.key }) {
            switch try await read(parts, of: store) {
            case .state(let state):
                joined.join(state)
                corrupt[store]?[digest] = nil
                settled[store, default: []].insert(digest)
            case .corrupt(let sentence):
                report(sentence)
                corrupt[store, default: [:]][digest] = sentence
                settled[store, default: []].insert(digest)
            case .lacking(let sentence):
                if let sentence { report(sentence) }
                if let part = parts.first { lacking.append((digest, part.vector)) }
            }
        }
        let needed = passOver(lacking, of: store, joined.state)
        return RemoteChange(joined, isComplete: needed == 0)
    }

    /// Settles what need not arrive: a state of which others, that are here, have taken in everything.
    /// - Returns: how many have to arrive; of copies none has.
    private func passOver(
        _ lacking: [(digest: Bits128, vector: VersionVector)],
        of store: String,
        _ joined: StoreState
    ) -> Int {
        if lacking.isEmpty { return 0 }
        var vector = joined.vector
        for found in heads where known.contains(found.digest) {
            if let part = found.head.parts[store] { vector.formUnion(part.vector) }
        }
        let unknown = lacking.filter { !vector.isSuperset(of: $0.vector) }.map(\.digest)
        settled[store, default: []].formUnion(Set(lacking.map(\.digest)).subtracting(unknown))
        return published[store, default: []].intersection(unknown).count
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
        var parts: [String: Set<Bits128>] = [:]
        var (cursor, isComplete) = (BlobCursor(), true)
        for found in heads {
            // Of a head that was joined before nothing is new, even if it can't be read whole any more.
            let isKnown = known.contains(found.digest)
            var isJoined = found.isWhole || isKnown
            var isRead = isJoined
            for (store, part) in found.head.parts {
                if isKnown || isSettled(part, of: store, stores) {
                    if corrupt[store]?[part.digest] == nil { parts[store, default: []].insert(part.digest) }
                } else {
                    isJoined = false
                    if settled[store]?.contains(part.digest) != true { isRead = false }
                }
            }
            if isJoined { cursor.heads.insert(found.digest) }
            if !isRead && !found.isCopy { isComplete = false }
        }
        cursor = await backend.didJoin(cursor, parts: parts, corrupt: corrupt, formerOwn: formerOwn)
        return PullResult(cursor: cursor.encoded(), isComplete: isComplete)
    }

    private func isSettled(_ part: Head.Part, of store: String, _ joined: Set<String>) -> Bool {
        if joinedParts[store]?.contains(part.digest) == true { return true }
        return joined.contains(store) && settled[store]?.contains(part.digest) == true
    }
}
