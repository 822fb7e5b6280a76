// SPDX-License-Identifier: Apache-2.0

// Blobs as rows of a cluster. A row's revision is its blob's version; all but segments are announced in P/blob/changed.
//
// A request may be carried out twice, the second time much later. So a head is replaced, and a blob removed, only if it
// is still the one that was there when that was decided.

internal import BackendSupport
internal import Blobs
internal import PropertyList
internal import Replication
internal import Synchronization

/// The storage of an encrypted account in a cluster.
final class EtcdStorage: BlobStorage {
    private let client: EtcdClient
    private let layout: EtcdLayout
    private let environment: Environment
    private let watch: EtcdWatch
    private let state = Mutex(State())

    private struct State {
        /// Whether something was listed since the last check.
        var hasLooked = false
        /// The markers that stand for the rows of an unencrypted account. They are written when the account moves.
        var rowMarkers: [String: [UInt8]] = [:]
        /// The revisions of heads, as they were listed or written.
        var heads: [String: Int64] = [:]
        /// The cluster's revision at the last listing.
        var revision: Int64 = 0
        /// How often the cluster turned out to be restored from a backup, so that its revisions recur.
        var restorations = 0
    }

    /// The size of the parts of a larger blob; etcd accepts requests of 1.5 MiB.
    static let rowBytes = 1_000_000
    /// The first byte of the row of a blob in parts, which no blob begins with. The blob's length follows.
    private static let inParts: UInt8 = 0
    private static let pageRows = 4096

    init(_ client: EtcdClient, _ environment: Environment) {
        (self.client, self.environment) = (client, environment)
        layout = EtcdLayout(client.url.prefix)
        watch = EtcdWatch(client, key: layout.changed) { Self.token(of: $0) }
    }

    private static func token(of row: EtcdRow) -> UInt64? {
        var decoder = CanonicalDecoder(row.value)
        return try? decoder.fixed64()
    }

    /// The storage's costs. The cluster keeps each version of a head until it is compacted, so changes are batched.
    var traits: BackendTraits {
        BackendTraits(coalescing: .seconds(1), firstWait: .milliseconds(10), givesHints: watch.isLive)
    }

    func hints() -> AsyncStream<Void> { watch.hints() }

    func close() {
        watch.close()
        client.close()
    }

    /// Sends nothing, because the next request finds out whether the cluster answers. A prefix need not be created.
    func check(creatingFolder createsFolder: Bool) async throws(RemoteError) -> [String] {
        state.withLock { $0.hasLooked = false }
        return []
    }

    // MARK: Reading

    func list(_ folder: String) async throws(RemoteError) -> [BlobListing] {
        var range = EtcdRange(under: folder.isEmpty ? layout.blobs : layout.blobs(folder), keysOnly: true)
        range.limit = Self.pageRows
        let outcome = try await client.commit(
            EtcdTransaction(operations: [.range(range), .range(EtcdRange(layout.account))]))
        noteLook(at: outcome.revision)
        var names = EtcdNames(in: range.key, areSegments: folder == BlobName.segments)
        var next = try names.take(outcome.found[0])
        range.revision = outcome.revision
        while let key = next {
            range.key = key
            next = try names.take(try await client.range(range).rows)
        }
        if folder == BlobName.heads {
            state.withLock { $0.heads = Dictionary(names.found.map { ("h/\($0.name)", $0.modified) }) { $1 } }
        }
        let listings = names.found.map {
            BlobListing(name: $0.name, version: version($0.modified, outcome))
        }
        guard folder == BlobName.markers else { return listings }
        return listings + (try noteRowMarkers(outcome.found[1].rows.first)).map { BlobListing(name: $0) }
    }

    /// Makes the watch follow the first listing since the last check.
    private func noteLook(at revision: Int64) {
        let isFirst = state.withLock { state in
            if revision < state.revision { state.restorations += 1 }
            state.revision = revision
            defer { state.hasLooked = true }
            return !state.hasLooked
        }
        if isFirst { watch.follow(client.member, after: revision) }
    }

    private func version(_ modified: Int64, _ outcome: EtcdOutcome) -> String {
        "\(modified) \(outcome.cluster) \(state.withLock(\.restorations))"
    }

    /// Notes the markers that stand for the account's row, so that an account in rows is found as an unencrypted one.
    /// - Returns: the names of the markers.
    private func noteRowMarkers(_ row: EtcdRow?) throws(RemoteError) -> [String] {
        let markers = try row.map { row throws(RemoteError) in try Self.markers(of: row.value) } ?? [:]
        state.withLock { $0.rowMarkers = markers }
        return markers.keys.map { String($0.dropFirst(BlobName.markers.count + 1)) }
    }

    /// Returns the markers that an account in rows would have as blobs. Rows don't hold the time of its creation.
    private static func markers(of row: [UInt8]) throws(RemoteError) -> [String: [UInt8]] {
        if row == EtcdAccount.fence { return [:] }
        let account: EtcdAccount
        do throws(EtcdFlaw) { account = try EtcdAccount(decoding: row) } catch {
            throw error.isTooNew ? .tooNew : RemoteError.corruptAccount
        }
        guard account.identifiers.count <= EtcdAccount.mostIdentifiers else { throw RemoteError.corruptAccount }
        return Dictionary(
            uniqueKeysWithValues: account.identifiers.map {
                (BlobName.marker($0), AccountMarker(identifier: $0, time: 0).encoded())
            })
    }

    func get(_ name: String, limit: Int, unless version: String?) async throws(RemoteError) -> BlobContent {
        if let marker = state.withLock({ $0.rowMarkers[name] }) { return .content(marker, version: nil) }
        guard let outcome = try await read(layout.blob(name)) else { return .unreadable("is too large") }
        guard let row = outcome.found.first?.rows.first else { return .absent }
        let present = self.version(row.modified, outcome)
        if present == version { return .unchanged }
        var bytes = row.value
        if bytes.first == Self.inParts {
            guard let count = Self.count(bytes) else { return .unreadable("is corrupt") }
            guard count <= limit else { return .unreadable("is too large") }
            bytes = try await parts(of: name, count)
        }
        return bytes.count <= limit ? .content(bytes, version: present) : .unreadable("is too large")
    }

    /// Reads a row; returns `nil` if it is too large for a response.
    private func read(_ key: [UInt8]) async throws(RemoteError) -> EtcdOutcome? {
        let transaction = EtcdTransaction(operations: [.range(EtcdRange(key))])
        let answer: Value
        do throws(EtcdFailure) {
            answer = try await client.ask("/v3/kv/txn", transaction.json, bytes: Self.rowBytes)
        } catch {
            if error.isTooLarge { return nil }
            throw error.remoteError(client)
        }
        return try RemoteError.reading { () throws(EtcdFlaw) in try EtcdOutcome(answer, to: transaction) }
    }

    private static func count(_ row: [UInt8]) -> Int? {
        var decoder = CanonicalDecoder(row)
        do throws(CanonicalDecodingError) {
            guard try decoder.byte() == inParts else { return nil }
            let count = Int(clamping: try decoder.varint())
            try decoder.finish()
            return count
        } catch {
            return nil
        }
    }

    /// Reads a blob that is in parts. The result ends before a part that is missing: a reader finds the segment
    /// corrupt, and a device that has its content writes it again.
    private func parts(of name: String, _ count: Int) async throws(RemoteError) -> [UInt8] {
        var bytes: [UInt8] = []
        for number in 0..<Self.parts(of: count) {
            let row = try await read(layout.part(number, ofBlob: name))?.found.first?.rows.first
            guard let row, row.value.count == min(Self.rowBytes, count - bytes.count) else { break }
            bytes += row.value
        }
        return bytes
    }

    private static func parts(of count: Int) -> Int { (count + rowBytes - 1) / rowBytes }

    // MARK: Writing

    func put(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        if name.hasPrefix(BlobName.heads + "/") { return try await writeWithFence(name, bytes, replaces: true) }
        guard bytes.count > Self.rowBytes || bytes.first == Self.inParts else {
            return try await write(layout.blob(name), bytes)
        }
        for number in 0..<Self.parts(of: bytes.count) {
            let part = bytes[(number * Self.rowBytes)...].prefix(Self.rowBytes)
            try await write(layout.part(number, ofBlob: name), Array(part))
        }
        var encoder = CanonicalEncoder()
        encoder.byte(Self.inParts)
        encoder.count(bytes.count)
        try await write(layout.blob(name), encoder.bytes)
    }

    private func write(_ key: [UInt8], _ bytes: [UInt8]) async throws(RemoteError) {
        _ = try await client.commit(EtcdTransaction(operations: [.put(key, bytes)]))
    }

    func create(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        try await writeWithFence(name, bytes, replaces: false)
    }

    /// Writes a marker, a note or a head, and the fence, and notifies the other devices.
    private func writeWithFence(_ name: String, _ bytes: [UInt8], replaces: Bool) async throws(RemoteError) {
        guard bytes.count <= Self.rowBytes else {
            throw RemoteError(.full, "The account has grown larger than an etcd cluster accepts at once.")
        }
        let key = layout.blob(name)
        var account: [UInt8]? = EtcdAccount.fence
        var revision = replaces ? state.withLock { $0.heads[name] ?? 0 } : 0
        for _ in 0..<EtcdPublishing.mostAttempts {
            var transaction = try fenceTransaction(replacing: account)
            transaction.conditions.append(.isUnchanged(key, since: revision))
            let token = environment.random()
            watch.ignore(token)
            transaction.operations += [.put(key, bytes), .put(layout.changed, Self.bytes(token))]
            transaction.otherwise = [.range(EtcdRange(layout.account)), .range(EtcdRange(key))]
            let outcome = try await client.commit(transaction)
            if outcome.isDone { return noteHead(name, outcome.revision) }
            let present = outcome.found[1].rows.first
            // The blob was written and the response was lost, or it is there already.
            if let present, present.value == bytes { return noteHead(name, present.modified) }
            if present != nil, !replaces { throw RemoteError(.denied, "\(name) exists already.") }
            (account, revision) = (outcome.found[0].rows.first?.value, present?.modified ?? 0)
        }
        throw RemoteError(
            .unavailable, "Other devices changed the account each time that this one tried to write to it.")
    }

    private func noteHead(_ name: String, _ revision: Int64) {
        if name.hasPrefix(BlobName.heads + "/") { state.withLock { $0.heads[name] = revision } }
    }

    /// Returns a transaction that writes the fence if it is missing. The identifiers of an account in rows stay as
    /// markers, by which another device that moves the account at the same time recognizes it.
    private func fenceTransaction(replacing account: [UInt8]?) throws(RemoteError) -> EtcdTransaction {
        guard let account else {
            return EtcdTransaction(
                conditions: [.isMissing(layout.account)], operations: [.put(layout.account, EtcdAccount.fence)])
        }
        var transaction = EtcdTransaction(conditions: [.value(layout.account, is: account)])
        if account == EtcdAccount.fence { return transaction }
        transaction.operations = [.put(layout.account, EtcdAccount.fence)]
        for (name, marker) in try Self.markers(of: account) {
            transaction.operations.append(.put(layout.blob(name), marker))
        }
        return transaction
    }

    private static func bytes(_ token: UInt64) -> [UInt8] {
        var encoder = CanonicalEncoder()
        encoder.fixed64(token)
        return encoder.bytes
    }

    /// Removes a blob with its parts, unless it was written again meanwhile.
    func delete(_ name: String) async throws(RemoteError) {
        // Parts without a blob are listed under the name of a half-written file.
        let blob = EtcdNames.blob(ofLeftover: name) ?? name
        let key = layout.blob(blob)
        let row = try await client.range(EtcdRange(key, keysOnly: true)).rows.rows.first
        if blob != name, row != nil { return }
        var operations = [EtcdOperation.delete(key)]
        if name.hasPrefix(BlobName.segments + "/") {
            operations.append(.deleteAll(EtcdRange(under: layout.parts(ofBlob: blob))))
        }
        _ = try await client.commit(
            EtcdTransaction(conditions: [.isUnchanged(key, since: row?.modified ?? 0)], operations: operations))
    }

    // MARK: Rows

    /// Removes the rows of an account that has moved, unless they may be another account's.
    /// - Parameter former: the identifiers that the account had when it was unencrypted.
    func removeRows(of former: Set<Bits128>) async throws(RemoteError) {
        let markers = try await client.range(EtcdRange(under: layout.blobs(BlobName.markers))).rows.rows
        let plain = Set(markers.compactMap { try? AccountMarker(decoding: $0.value).identifier })
        guard !plain.isEmpty, plain.isSubset(of: former) else { return }
        for folder in layout.rows {
            var range = EtcdRange(under: folder, keysOnly: true)
            range.limit = Self.pageRows
            // Each round leaves fewer rows; the limit is for servers that are not etcd.
            for _ in 0..<EtcdNames.mostPages {
                let page = try await client.range(range).rows
                guard let last = page.rows.last else { break }
                let removed = EtcdRange(from: range.key, to: last.key + [0])
                _ = try await client.commit(
                    EtcdTransaction(
                        conditions: [.value(layout.account, is: EtcdAccount.fence)],
                        operations: [.deleteAll(removed)]))
                if !page.hasMore { break }
            }
        }
    }
}

/// The names in a folder of blobs, collected page by page. Foreign names are not kept, so any number of them may exist.
struct EtcdNames {
    private let folder: [UInt8]
    private let areSegments: Bool
    private(set) var found: [(name: String, modified: Int64)] = []
    private var last: [UInt8] = []
    private var pages = 0

    static let mostPages = 256

    init(in folder: [UInt8], areSegments: Bool) { (self.folder, self.areSegments) = (folder, areSegments) }

    /// Adds a page.
    /// - Returns: the key at which the next page begins; `nil` if this was the last one, or enough names were found.
    mutating func take(_ page: EtcdRows) throws(RemoteError) -> [UInt8]? {
        for row in page.rows {
            guard last.lexicographicallyPrecedes(row.key) else { throw EtcdBackend.corrupt }
            last = row.key
            if let name = String(validating: row.key.dropFirst(folder.count), as: UTF8.self) { add(name, row) }
        }
        pages += 1
        guard page.hasMore, found.count < BlobName.mostListed else { return nil }
        guard !page.rows.isEmpty else { throw EtcdBackend.corrupt }
        guard pages < Self.mostPages else {
            throw RemoteError(
                .damaged,
                "The cluster has more rows under this prefix than an account can have. Check whether something else "
                    + "uses the prefix.")
        }
        return last + [0]
    }

    private mutating func add(_ name: String, _ row: EtcdRow) {
        guard found.count < BlobName.mostListed else { return }
        guard let slash = name.firstIndex(of: "/") else {
            if BlobName.mayBeOurs(name.utf8) { found.append((name, row.modified)) }
            return
        }
        let blob = String(name[..<slash])
        let leftover = ".\(blob).0.tmp"
        guard areSegments, Bits128(blob) != nil, found.last?.name != blob, found.last?.name != leftover else { return }
        found.append((leftover, row.modified))
    }

    /// Returns the blob whose parts a leftover stands for; `nil` if the name is not that of a leftover.
    static func blob(ofLeftover name: String) -> String? {
        let folder = "\(BlobName.segments)/"
        guard name.hasPrefix(folder), BlobName.isTemporary(String(name.dropFirst(folder.count))) else { return nil }
        return folder + name.dropFirst(folder.count + 1).prefix { $0 != "." }
    }
}
