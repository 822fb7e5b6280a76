// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication
internal import Synchronization

/// A pull from a storage of blobs: what was new when it began.
actor BlobPull<Storage: BlobStorage>: RemotePull {
    nonisolated let account: RemoteAccount
    nonisolated let devices: [Origin: RemoteDevice]
    nonisolated let stores: [String]
    nonisolated let ownPublication: OwnPublication
    /// What keeps states from being read, and then what is wrong with heads.
    nonisolated var problems: [String] { unreadStates.withLock(\.self) + headProblems }

    private nonisolated let unreadStates: Mutex<[String]>
    private nonisolated let headProblems: [String]
    private let backend: BlobBackend<Storage>
    /// The backend's executor.
    nonisolated var unownedExecutor: UnownedSerialExecutor { backend.unownedExecutor }
    private let formerOwn: HeadIdentity?
    private var news: HeadNews
    /// What earlier pulls have skipped. It need not be reported again.
    private let gaps: HeadGaps
    /// Whether segments are damaged that this device needs.
    private var foundDamage: Bool
    /// The new states by store and digest, each in the ways in which devices have cut it.
    private let parts: [String: [Bits128: [Head.Part]]]

    init(
        backend: BlobBackend<Storage>,
        account: RemoteAccount,
        found: FoundHeads,
        known: Set<Bits128>,
        joined: JoinedNews,
        ownPublication: OwnPublication,
        formerOwn: HeadIdentity?
    ) {
        self.backend = backend
        self.account = account
        self.ownPublication = ownPublication
        self.formerOwn = formerOwn
        let news = HeadNews(
            found.heads.map(\.seen), known: known, joined: joined.states, passedOver: joined.gaps.statesToSkip,
            corrupt: joined.corrupt)
        self.news = news
        gaps = joined.gaps
        foundDamage = found.heads.contains { !$0.isWhole && !$0.problems.isEmpty }
        stores = news.stores
        unreadStates = Mutex(news.corrupt.values.flatMap(\.values).sorted())
        headProblems = found.problems
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
        // The previous store's states are joined by now.
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
                if let sentence, gaps.states[store]?.contains(digest) != true {
                    report(sentence)
                    foundDamage = true
                }
                lacking.insert(digest)
            }
        }
        let isComplete = news.passOver(lacking, of: store, read: joined.state.vector)
        return RemoteChange(joined, isComplete: isComplete)
    }

    /// Reads a state from the first of its parts that can be read.
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
        unreadStates.withLock { if !$0.contains(sentence) { $0.append(sentence) } }
    }

    func finish(joined stores: Set<String>) async -> PullResult {
        let result = news.finish(joined: stores)
        let cursor = await backend.didJoin(
            JoinedNews(result, after: gaps, corrupt: news.corrupt), former: formerOwn, foundDamage: foundDamage)
        return PullResult(
            cursor: cursor.encoded(), isComplete: result.isComplete, lackingOrigins: result.lackingOrigins)
    }
}
