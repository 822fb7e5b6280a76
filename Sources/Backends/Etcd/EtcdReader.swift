// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import PropertyList
internal import Replication

/// Reads stores from a cluster: each as it was at one moment, whatever is written meanwhile.
final class EtcdReader {
    private let client: EtcdClient
    private let layout: EtcdLayout
    private let row: EtcdAccountRow
    /// This account's share of the bound on what all accounts hold in memory.
    private let share: RemoteBudget.Share
    /// How many entries are requested at once.
    private var pageLimit = 1024

    init(_ client: EtcdClient, _ layout: EtcdLayout, _ row: EtcdAccountRow, _ share: RemoteBudget.Share) {
        (self.client, self.layout, self.row, self.share) = (client, layout, row, share)
    }

    /// A store in the cluster: all of it, or what has changed since a revision.
    struct Reading {
        var state = StoreState()
        var isDelta = false
        /// A sentence about what can't be read; `nil` if everything was.
        var problem: String?
    }

    /// Reads a store as it was at one moment, or what has changed in it.
    /// - Parameters:
    ///   - since: the revision of a position, to read what has changed since; 0 to read the whole store.
    ///   - known: an earlier position. What is read counts as the store's state at that position or later, so an answer
    ///     from before must not be used. If the cluster was restored from a backup since, the changes since the
    ///     revision are not all that this device lacks, and the version vector must not be believed.
    func read(
        _ store: String, since: Int64 = 0, after known: EtcdPosition
    ) async throws(RemoteError) -> Reading {
        // What was read before is joined by now.
        forgetNews()
        var range = EtcdRange(under: layout.entries(store), since: since)
        let others = [
            EtcdRange(under: layout.vectors(store)), EtcdRange(layout.gone(store)), EtcdRange(layout.account),
        ]
        var transaction: EtcdTransaction { EtcdTransaction(operations: ([range] + others).map { .range($0) }) }
        let answer = try await ask("/v3/kv/txn") { limit in
            range.limit = limit
            return transaction.json
        }
        let outcome = try RemoteError.reading { () throws(EtcdFlaw) in try EtcdOutcome(answer, to: transaction) }
        let present = try row.present(outcome.found[3], outcome.revision)
        if Rule.sameHistory.isOn, present.revision < known.revision { throw Self.otherHistory }
        if since > 0 {
            try checkHistory(present, after: known)
            // A delta doesn't show deleted rows, but this row shows that there were some.
            if outcome.found[2].rows.contains(where: { $0.modified > since }) {
                return try await read(store, after: known)
            }
        }
        range.revision = outcome.revision
        let entries = try await pages(of: store, from: outcome.found[0], range)
        // Rows that are missing from a whole store would count as deleted.
        guard since > 0 || entries.count == outcome.found[0].count else { throw EtcdBackend.corrupt }
        if outcome.found[0].hasMore { try checkHistory(try await row.present(), after: known) }
        return try await reading(
            store, entries, outcome.found[1].rows, isDelta: since > 0, at: outcome.revision)
    }

    /// Releases the memory budget of what was read, which is joined or no longer needed.
    func forgetNews() { try? share.hold { $0.news = 0 } }

    private func checkHistory(_ present: EtcdPosition, after known: EtcdPosition) throws(RemoteError) {
        if Rule.sameHistory.isOn, !present.account.tokens.contains(known.token) { throw Self.otherHistory }
    }

    private static let otherHistory = RemoteError(
        .unavailable, "The cluster was restored from a copy, or much was written to the account.")

    /// Returns the rows of a store's entries: a first page, and the following pages as they were at the same moment.
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
            let page = try RemoteError.reading { () throws(EtcdFlaw) in try EtcdRows(answer, to: range) }
            next = try pages.take(page, of: store)
            try share.hold { $0.news = pages.memory }
        }
        return pages.rows
    }

    /// Requests entries, and fewer at once if they are too large for one response.
    private func ask(_ path: String, _ question: (_ limit: Int) -> Value) async throws(RemoteError) -> Value {
        while true {
            do throws(EtcdFailure) {
                return try await client.ask(path, question(pageLimit), bytes: 1_000_000)
            } catch {
                guard error.isTooLarge, halvePages() else { throw error.remoteError(client) }
            }
        }
    }

    /// Halves the number of entries that are requested at once.
    /// - Returns: false if it can't be halved.
    private func halvePages() -> Bool {
        guard pageLimit > 1 else { return false }
        pageLimit /= 2
        return true
    }

    private func reading(
        _ store: String, _ entries: [EtcdRow], _ vectors: [EtcdRow], isDelta: Bool, at revision: Int64
    ) async throws(RemoteError) -> Reading {
        var reading = Reading(isDelta: isDelta)
        var bytes = 0
        let folder = layout.entries(store).count
        for row in entries {
            let key = String(validating: row.key.dropFirst(folder), as: UTF8.self)
            guard let key, key.utf8.count <= EntryLimits.keyBytes,
                let entry = try? EtcdEntry(decoding: row.value),
                let whole = try await whole(entry, store, at: revision, besides: bytes)
            else {
                reading.problem = "An entry of the store \(store) is corrupt."
                continue
            }
            bytes += whole.value?.count ?? 0
            try hold(bytes, of: store)
            reading.state.entries[Key(unchecked: key)] = whole
        }
        reading.state.vector = vector(vectors, layout.vectors(store).count)
        // A version vector without its entries would delete them.
        if reading.problem != nil { reading.state.vector = VersionVector() }
        return reading
    }

    private func vector(_ rows: [EtcdRow], _ folder: Int) -> VersionVector {
        var seen: [Origin: UInt64] = [:]
        for row in rows {
            let name = String(decoding: row.key.dropFirst(folder), as: UTF8.self)
            // If a place in the version vector is left out, writes are merely joined again.
            guard let origin = Origin(name), let n = UInt64(String(decoding: row.value, as: UTF8.self)),
                n <= EntryLimits.n
            else { continue }
            seen[origin] = n
        }
        return VersionVector(seen)
    }

    /// Counts the values of a store. Those in parts are not among the rows, so the rows' memory doesn't include them.
    private func hold(_ bytes: Int, of store: String) throws(RemoteError) {
        guard bytes <= EtcdPages.mostBytes else { throw EtcdPages.excess(store) }
        try share.hold { $0.news = max($0.news, 2 * bytes) }
    }

    /// Returns an entry with its value; `nil` if parts are missing.
    /// - Parameter other: how many bytes of other values are in memory.
    private func whole(
        _ entry: EtcdEntry, _ store: String, at revision: Int64, besides other: Int
    ) async throws(RemoteError) -> Entry? {
        guard let bytes = entry.partedBytes else { return entry.entry }
        guard bytes <= StoreBounds.bytes else { return nil }
        var (value, range) = ([UInt8](), EtcdRange(under: layout.parts(store, entry.entry.dot)))
        (range.revision, range.limit) = (revision, 4)
        while true {
            let answer = try await ask("/v3/kv/range") { _ in range.json }
            let page = try RemoteError.reading { () throws(EtcdFlaw) in try EtcdRows(answer, to: range) }
            let before = value.count
            value += page.rows.flatMap(\.value)
            try hold(other + value.count, of: store)
            // A server could send empty pages without end.
            guard page.hasMore, before < value.count, value.count < bytes, let last = page.rows.last else { break }
            range.key = last.key + [0]
        }
        return value.count == bytes ? Entry(stamp: entry.entry.stamp, n: entry.entry.n, value: value) : nil
    }
}
