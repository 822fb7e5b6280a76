// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import PropertyList
public import Replication
internal import Synchronization

extension EtcdBackend {
    /// Looks what is new since a cursor.
    public func pull(
        after cursor: [UInt8]?, as origin: Origin, published count: UInt64
    ) async throws(RemoteError) -> any RemotePull {
        try checkOpen()
        // Whoever has left an origin has forgotten what it had seen of it, and reads everything anew.
        let hasLeft = Rule.readAnew.isOn && memory.origin.map { $0 != origin } ?? false
        var base = base(hasLeft ? nil : cursor)
        var look = try await look(since: base?.revision ?? 0, origin)
        memory.isOwing = memory.isOwing || base?.isOwing == true
        if let known = base, !look.isKnown(known) || look.isElsewhere(known) {
            // Either much has happened, or the cluster was restored from a copy and has lost what was written since.
            if !look.isKnown(known) { memory.isOwing = true }
            (memory.joined, memory.outlines, base) = (nil, EtcdOutlines(), nil)
            look = try await self.look(since: 0, origin)
        }
        watch.follow(client.member, after: look.revision)
        let own = memory.look(at: look.own, under: origin, published: count)
        return EtcdPull(self, origin, base, look, ownPublication: own, devices: names)
    }

    /// From where to go on: from the cursor, or from what this process has done since it was given.
    private func base(_ cursor: [UInt8]?) -> EtcdCursor? {
        var base = cursor.flatMap { EtcdCursor(decoding: $0) }
        if let joined = memory.joined, cursor != nil, cursor == memory.cursor {
            base?.revision = joined.revision
            base?.token = joined.token
            base?.isOwing = memory.isOwing
        } else {
            (memory.joined, memory.outlines) = (nil, EtcdOutlines())
        }
        return base
    }

    private var names: [Origin: RemoteDevice] { memory.devices?.mapValues { $0.device } ?? [:] }

    /// What one transaction sees of the account.
    struct Look {
        let position: EtcdPosition
        /// The cluster's revision, and which cluster it is.
        let (revision, cluster): (Int64, UInt64)
        let own: EtcdDevice?
        /// Stores that have changed.
        let changed: Set<String>
        /// Stores of which entries went without another in their place.
        let gone: Set<String>

        /// The history of the account is the one that somebody has seen a part of.
        func isKnown(_ cursor: EtcdCursor) -> Bool {
            !Rule.knownHistory.isOn || position.account.tokens.contains(cursor.token)
        }

        /// The rows were moved to another cluster, or to one that was made anew, so that they have other revisions.
        func isElsewhere(_ cursor: EtcdCursor) -> Bool {
            let isOther = cluster != cursor.cluster && cluster != 0 && cursor.cluster != 0
            return isOther || Rule.accountRevision.isOn && revision < cursor.revision
        }
    }

    private func look(since revision: Int64, _ origin: Origin) async throws(RemoteError) -> Look {
        let ranges = [
            EtcdRange(layout.account), EtcdRange(layout.device(origin)),
            EtcdRange(under: layout.devices, since: memory.devices == nil ? 0 : revision),
            EtcdRange(under: layout.stores, since: revision, keysOnly: true),
            EtcdRange(under: layout.gone, since: revision, keysOnly: true),
        ]
        let outcome = try await client.commit(EtcdTransaction(operations: ranges.map { .range($0) }))
        let found = outcome.found
        guard found.count == ranges.count else { throw Self.corrupt }
        let position = try presentPosition(found[0], outcome.revision)
        note(devices: found[2].rows)
        return Look(
            position: position, revision: outcome.revision, cluster: outcome.cluster,
            own: found[1].rows.first.flatMap { try? EtcdDevice(decoding: $0.value) },
            changed: try stores(found[3].rows, under: layout.stores),
            gone: try stores(found[4].rows, under: layout.gone))
    }

    /// The stores that rows are of. Whoever may write to the cluster may name any number of them.
    private func stores(_ rows: [EtcdRow], under folder: [UInt8]) throws(RemoteError) -> Set<String> {
        guard rows.count <= EtcdLimits.stores else {
            throw RemoteError(
                .damaged, "The account names \(rows.count) stores, and \(EtcdLimits.stores) is the most that are read.")
        }
        return Set(rows.compactMap { layout.store(of: $0, under: folder) }.filter(\.isStoreIdentifier))
    }

    private func note(devices rows: [EtcdRow]) {
        var devices = memory.devices ?? [:]
        for row in rows {
            let name = String(decoding: row.key.dropFirst(layout.devices.count), as: UTF8.self)
            // A name is for people; one that can't be read is not told.
            guard let origin = Origin(name), let device = try? EtcdDevice(decoding: row.value) else { continue }
            guard devices.count < EtcdLimits.devices || devices[origin] != nil else { continue }
            devices[origin] = device
        }
        memory.devices = devices
    }

    static let corrupt = RemoteError(.unavailable, "What the cluster answers makes no sense.")

    // MARK: Stores

    /// A store as it is there: all of it, or what has changed since a revision.
    struct StoreReading {
        var state = StoreState()
        var isDelta = false
        /// What can't be read.
        var problem: String?
    }

    /// Reads a store at one moment, or what of it has changed.
    /// - Parameters:
    ///   - since: the revision of a position after which it has.
    ///   - known: a position that has been before. Where the cluster is restored from a copy meanwhile, the rows that
    ///     have changed since are not those, and what is said of what was seen must not be believed.
    func read(
        _ store: String, since: Int64 = 0, after known: EtcdPosition
    ) async throws(RemoteError) -> StoreReading {
        // What was read before is joined.
        forgetNews()
        var range = EtcdRange(under: layout.entries(store), since: since)
        var others = [EtcdRange(under: layout.vectors(store)), EtcdRange(layout.gone(store))]
        if since > 0 { others.append(EtcdRange(layout.account)) }
        let answer = try await ask("/v3/kv/txn") { limit in
            range.limit = limit
            return EtcdTransaction(operations: ([range] + others).map { .range($0) }).json
        }
        let outcome = try RemoteError.reading { () throws(EtcdFlaw) in try answer.outcome }
        guard outcome.found.count == 1 + others.count else { throw Self.corrupt }
        if since > 0 {
            try checkHistory(outcome.found[3], outcome.revision, after: known)
            // Nothing tells of an entry that went, but that one did.
            if outcome.found[2].rows.contains(where: { $0.modified > since }) {
                return try await read(store, after: known)
            }
        }
        range.revision = outcome.revision
        let entries = try await pages(of: store, from: outcome.found[0], range)
        if outcome.found[0].hasMore {
            let (rows, revision) = try await client.range(EtcdRange(layout.account))
            try checkHistory(rows, revision, after: known)
        }
        return try await reading(
            store, entries, outcome.found[1].rows, isDelta: since > 0, at: outcome.revision)
    }

    func forgetNews() { try? share.hold { $0.news = 0 } }

    private func checkHistory(
        _ rows: EtcdRows, _ revision: Int64, after known: EtcdPosition
    ) throws(RemoteError) {
        let present = try presentPosition(rows, revision)
        guard Rule.sameHistory.isOn, !present.account.tokens.contains(known.token) else { return }
        throw RemoteError(.unavailable, "The cluster was restored from a copy, or much was written to the account.")
    }

    /// The rows of a store's entries: a first page, and those after it as they were at the same moment.
    private func pages(
        of store: String, from first: EtcdRows, _ range: EtcdRange
    ) async throws(RemoteError) -> [EtcdRow] {
        var (pages, range) = (EtcdPages(), range)
        var next = try pages.take(first, of: store)
        try share.hold { $0.news = pages.memory }
        while let key = next {
            range.key = key
            let answer = try await ask("/v3/kv/range") { limit in
                range.limit = limit
                return range.json
            }
            let page = try RemoteError.reading { () throws(EtcdFlaw) in try answer.rows }
            next = try pages.take(page, of: store)
            try share.hold { $0.news = pages.memory }
        }
        return pages.rows
    }

    /// Asks for entries, and for fewer at once where they are too much for one answer.
    private func ask(_ path: String, _ question: (_ limit: Int) -> Value) async throws(RemoteError) -> Value {
        while true {
            do throws(EtcdFailure) {
                return try await client.ask(path, question(memory.pageLimit), bytes: 1_000_000)
            } catch {
                guard error.isTooLarge, memory.halvePages() else { throw error.remoteError(client) }
            }
        }
    }

    private func reading(
        _ store: String, _ entries: [EtcdRow], _ vectors: [EtcdRow], isDelta: Bool, at revision: Int64
    ) async throws(RemoteError) -> StoreReading {
        var reading = StoreReading(isDelta: isDelta)
        var bytes = 0
        let folder = layout.entries(store).count
        for row in entries {
            let key = String(validating: row.key.dropFirst(folder), as: UTF8.self)
            guard let key, key.utf8.count <= EntryLimits.keyBytes,
                let entry = try? EtcdEntry(decoding: row.value),
                let whole = try await whole(entry, store, at: revision)
            else {
                reading.problem = "An entry of the store \(store) makes no sense."
                continue
            }
            bytes += whole.value?.count ?? 0
            guard bytes <= EtcdPages.mostBytes else { throw EtcdPages.excess(store) }
            // Values in parts are not among the rows.
            try share.hold { $0.news = max($0.news, 2 * bytes) }
            reading.state.entries[Key(unchecked: key)] = whole
        }
        reading.state.vector = vector(vectors, layout.vectors(store).count)
        // What was seen and is not there is gone: nobody may be told of one without the other.
        if reading.problem != nil { reading.state.vector = VersionVector() }
        return reading
    }

    private func vector(_ rows: [EtcdRow], _ folder: Int) -> VersionVector {
        var seen: [Origin: UInt64] = [:]
        for row in rows {
            let name = String(decoding: row.key.dropFirst(folder), as: UTF8.self)
            // What is not known to have been seen is only seen again.
            guard let origin = Origin(name), let n = UInt64(String(decoding: row.value, as: UTF8.self)),
                n <= EntryLimits.n
            else { continue }
            seen[origin] = n
        }
        return VersionVector(seen)
    }

    /// An entry with its value; `nil` if parts of it are missing.
    private func whole(_ entry: EtcdEntry, _ store: String, at revision: Int64) async throws(RemoteError) -> Entry? {
        guard let bytes = entry.partedBytes else { return entry.entry }
        guard bytes <= EntryLimits.storeBytes else { return nil }
        var (value, range) = ([UInt8](), EtcdRange(under: layout.parts(store, entry.entry.dot)))
        (range.revision, range.limit) = (revision, 4)
        while true {
            let answer = try await ask("/v3/kv/range") { _ in range.json }
            let page = try RemoteError.reading { () throws(EtcdFlaw) in try answer.rows }
            let before = value.count
            value += page.rows.flatMap(\.value)
            // A page that brings nothing would be followed by others for ever.
            guard page.hasMore, before < value.count, value.count < bytes, let last = page.rows.last else { break }
            range.key = last.key + [0]
        }
        return value.count == bytes ? Entry(stamp: entry.entry.stamp, n: entry.entry.n, value: value) : nil
    }
}

/// A look at the cluster, and what is read after it.
actor EtcdPull: RemotePull {
    nonisolated let account: RemoteAccount
    nonisolated let devices: [Origin: RemoteDevice]
    nonisolated let stores: [String]
    nonisolated let ownPublication: OwnPublication
    nonisolated var problems: [String] { flaws.withLock(\.self) }

    private let backend: EtcdBackend
    /// Where the backend's is.
    nonisolated var unownedExecutor: UnownedSerialExecutor { backend.unownedExecutor }
    private let origin: Origin
    private let base: EtcdCursor?
    private let look: EtcdBackend.Look
    private nonisolated let flaws = Mutex<[String]>([])
    /// The stores that could be read.
    private var readStores: Set<String> = []
    /// What the cluster has of them, or what of it has changed: without their values, which are the engine's by now.
    private var (wholes, deltas) = (EtcdOutlines(), EtcdOutlines())

    init(
        _ backend: EtcdBackend, _ origin: Origin, _ base: EtcdCursor?, _ look: EtcdBackend.Look,
        ownPublication: OwnPublication, devices: [Origin: RemoteDevice]
    ) {
        (self.backend, self.origin, self.base, self.look) = (backend, origin, base, look)
        (self.ownPublication, self.devices) = (ownPublication, devices)
        account = look.position.account.remote
        stores = look.changed.union(base?.missing ?? []).sorted()
    }

    func change(of store: String) async throws(RemoteError) -> RemoteChange {
        let isWhole = base.map { $0.missing.contains(store) } ?? true || look.gone.contains(store)
        let reading = try await backend.read(
            store, since: isWhole ? 0 : base?.revision ?? 0, after: look.position)
        if let problem = reading.problem {
            flaws.withLock { $0.append(problem) }
        } else {
            readStores.insert(store)
            let outline = EtcdOutline(of: reading.state)
            if reading.isDelta { deltas[store] = outline } else { wholes[store] = outline }
        }
        return RemoteChange(state: reading.state, isComplete: reading.problem == nil, isDelta: reading.isDelta)
    }

    func finish(joined stores: Set<String>) async -> PullResult {
        let isRead = readStores.isSuperset(of: self.stores)
        let joined = readStores.intersection(stores)
        let missing = Set(self.stores).subtracting(joined)
        let cursor = await backend.keep(look, origin, joined, wholes, deltas, missing: missing)
        readStores = []
        (wholes, deltas) = (EtcdOutlines(), EtcdOutlines())
        return PullResult(cursor: cursor, isComplete: isRead)
    }
}

extension EtcdBackend {
    /// Notes up to where everything is joined.
    func keep(
        _ look: Look, _ origin: Origin, _ joined: Set<String>, _ wholes: EtcdOutlines, _ deltas: EtcdOutlines,
        missing: Set<String>
    ) -> [UInt8] {
        forgetNews()
        (memory.joined, memory.origin) = (look.position, origin)
        for store in joined {
            var outline = wholes[store]
            if let delta = deltas[store] {
                outline = memory.outlines[store]
                outline?.take(delta)
            }
            // What there was no room for is not known any more.
            memory.outlines[store] = outline
        }
        for store in missing { memory.outlines[store] = nil }
        var cursor = EtcdCursor(revision: look.position.revision, token: look.position.token)
        (cursor.missing, cursor.isOwing, cursor.cluster) = (missing, memory.isOwing, look.cluster)
        memory.cursor = cursor.encoded
        return cursor.encoded
    }
}
