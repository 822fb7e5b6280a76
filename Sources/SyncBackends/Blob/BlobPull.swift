// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
public import StoreEngine
public import SyncEngine
internal import Synchronization

extension BlobBackend {
    /// Looks what is new since a cursor.
    public func pull(after cursor: [UInt8]?, as origin: Origin) async throws(RemoteError) -> any RemotePull {
        let account = try await presentAccount()
        memory.pulls += 1
        let cursor = cursor.map(BlobCursor.init(decoding:))
        if cursor == nil { memory.forgetJoined() }
        let found = try await readHeads(of: account)
        let own = try await look(at: found.named(origin), as: origin, cursor)
        var known = cursor?.heads ?? []
        if let cursor {
            known.formUnion([cursor.own?.digest, memory.published?.digest].compactMap(\.self))
        }
        return BlobPull(
            backend: self,
            account: account,
            found: found,
            known: known,
            joinedParts: memory.joinedParts,
            ownPublication: own,
            formerOwn: cursor?.own
        )
    }

    /// What became of this device's own head.
    private func look(
        at found: FoundHead?,
        as origin: Origin,
        _ cursor: BlobCursor?
    ) async throws(RemoteError) -> OwnPublication {
        switch memory.classify(found?.digest, origin, cursor) {
        case .none: return .asPublished
        case .lost, .older, .inherited: return .missing
        case .foreign: return .foreign
        case .current:
            guard let found else { return .missing }
            if memory.published == nil {
                memory.published = BlobMemory.PublishedHead(
                    head: found.head,
                    digest: found.digest,
                    length: found.length,
                    isTrusted: true
                )
            }
            guard isThorough else { return .asPublished }
            let needed = Set(found.head.parts.values.flatMap(\.segmentNames))
            return try await listSegments().isSuperset(of: needed) ? .asPublished : .missing
        }
    }

    /// Remembers what was joined, and gives what this device published last.
    func didJoin(_ heads: Set<Bits128>, parts: [String: Set<Bits128>], formerOwn: BlobCursor.Own?) -> BlobCursor.Own? {
        memory.joinedHeads = heads
        memory.joinedParts = parts
        guard let published = memory.published else { return formerOwn }
        return BlobCursor.Own(origin: published.head.origin, digest: published.digest)
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
    private let heads: [FoundHead]
    private let formerOwn: BlobCursor.Own?
    /// Heads that were joined before.
    private let known: Set<Bits128>
    /// The digests of states that were joined before.
    private let joinedParts: [String: Set<Bits128>]
    /// What is taken in already of each store.
    private let contexts: [String: Context]
    /// Of each store the states that are new, by their digest, each as one or more devices have cut it.
    private let news: [String: [Bits128: [Head.Part]]]
    /// The digests of what was read, or need not be.
    private var settled: [String: Set<Bits128>] = [:]

    init(
        backend: BlobBackend<Storage>,
        account: RemoteAccount,
        found: FoundHeads,
        known: Set<Bits128>,
        joinedParts: [String: Set<Bits128>],
        ownPublication: OwnPublication,
        formerOwn: BlobCursor.Own?
    ) {
        self.backend = backend
        self.account = account
        self.ownPublication = ownPublication
        self.formerOwn = formerOwn
        self.known = known
        heads = found.heads
        problemList = Mutex(found.problems)
        devices = Self.devices(found.heads)
        var (joined, contexts) = (joinedParts, [String: Context]())
        for found in found.heads where known.contains(found.digest) {
            for (store, part) in found.head.parts {
                joined[store, default: []].insert(part.digest)
                contexts[store, default: Context()].formUnion(part.context)
            }
        }
        (self.joinedParts, self.contexts) = (joined, contexts)
        news = Self.news(found.heads.filter { !known.contains($0.digest) }, besides: joined)
        stores = news.keys.sorted()
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
        var joined: StoreState?
        var lacking: [(digest: Bits128, context: Context)] = []
        for (digest, parts) in news.sorted(by: { $0.key < $1.key }) {
            switch try await read(parts, of: store) {
            case .state(let state):
                if joined?.join(state) == nil { joined = state }
                settled[store, default: []].insert(digest)
            case .senseless(let sentence):
                report(sentence)
                settled[store, default: []].insert(digest)
            case .lacking(let sentence):
                if let sentence { report(sentence) }
                if let part = parts.first { lacking.append((digest, part.context)) }
            }
        }
        let needed = passOver(lacking, of: store, joined)
        return RemoteChange(state: joined ?? StoreState(), isComplete: needed == 0)
    }

    /// Settles what need not arrive: a state of which others, that are here, have taken in everything.
    /// - Returns: how many have to arrive.
    private func passOver(
        _ lacking: [(digest: Bits128, context: Context)],
        of store: String,
        _ joined: StoreState?
    ) -> Int {
        var context = contexts[store] ?? Context()
        context.formUnion(joined?.context ?? Context())
        let dominated = lacking.filter { context.isSuperset(of: $0.context) }
        for part in dominated { settled[store, default: []].insert(part.digest) }
        return lacking.count - dominated.count
    }

    /// Reads a state, of which it is enough that one of those who hold it can be read.
    private func read(_ parts: [Head.Part], of store: String) async throws(RemoteError) -> PartContent {
        var (isLacking, sentence): (Bool, String?) = (false, nil)
        for part in parts {
            switch try await backend.readState(of: part, store: store) {
            case .state(let state): return .state(state)
            case .lacking(let clause): (isLacking, sentence) = (true, sentence ?? clause)
            case .senseless(let clause): sentence = sentence ?? clause
            }
        }
        return isLacking ? .lacking(sentence) : .senseless(sentence ?? "")
    }

    private func report(_ sentence: String) {
        problemList.withLock { if !$0.contains(sentence) { $0.append(sentence) } }
    }

    func finish(joined stores: Set<String>) async -> PullResult {
        var parts: [String: Set<Bits128>] = [:]
        var cursor = BlobCursor()
        for found in heads {
            var isJoined = true
            for (store, part) in found.head.parts {
                if isSettled(part, of: store, stores) {
                    parts[store, default: []].insert(part.digest)
                } else {
                    isJoined = false
                }
            }
            if isJoined { cursor.heads.insert(found.digest) }
        }
        cursor.own = await backend.didJoin(cursor.heads, parts: parts, formerOwn: formerOwn)
        return PullResult(cursor: cursor.encoded(), isComplete: cursor.heads.count == heads.count)
    }

    private func isSettled(_ part: Head.Part, of store: String, _ joined: Set<String>) -> Bool {
        if joinedParts[store]?.contains(part.digest) == true { return true }
        return joined.contains(store) && settled[store]?.contains(part.digest) == true
    }
}
