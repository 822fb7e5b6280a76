// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import PropertyList
internal import Replication

extension Salvage {
    /// Reads what can be read of the database, without moving it.
    /// - Parameters:
    ///   - begin: called once all but the changes is read.
    ///   - found: called with the changes of each replica that are worth saving.
    func read(
        into saved: inout Saved, begin: (Saved) throws -> Void, found: ([SavedChange]) throws -> Void
    ) throws {
        saved.unsynchronized = DatabaseTraces(directory: directory).excludedStores
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(1)
        // Without this, SQLite reads nothing of a file shorter than its header says, or with a damaged schema.
        configuration.prepareDatabase { db in
            sqlite3_limit(db.sqliteConnection, SQLITE_LIMIT_LENGTH, DatabaseFile.longestRow)
            try db.execute(sql: "PRAGMA writable_schema = ON")
        }
        guard !DatabaseTraces.isEmpty(path), let queue = try? DatabaseQueue(path: path, configuration: configuration)
        else { return try begin(saved) }
        defer { try? queue.close() }
        try queue.unsafeReentrantRead { db in
            let current = (try? db.property("account")) ?? nil
            let names = readNames(into: &saved, current: current, db)
            try begin(saved)
            try readReplicas(of: names, current: current, into: &saved, db, found)
        }
    }

    /// Reads the accounts and the stores.
    /// - Parameter current: the current account's row.
    /// - Returns: the stores' identifiers by their rows.
    private func readNames(into saved: inout Saved, current: Int64?, _ db: Database) -> [Int64: String] {
        if let current, current > 0, let account = (try? db.account(current)) ?? nil, !account.identifier.isEmpty {
            saved.account = account.identifier
        }
        for row in rows(of: "account", db) {
            guard let id: Int64 = try? row.decode(forColumn: "id"), id > 0,
                let identifier = try? row.decode(String.self, forColumn: "identifier")
            else { continue }
            if (try? db.isEncrypted(id)) == true { saved.encrypted.insert(identifier) }
            saved.formerNames[identifier] = try? db.formerNames(of: id)
        }
        var names: [Int64: String] = [:]
        for row in rows(of: "store", db) {
            saved.generation = max(saved.generation, (try? row.counter("generation")) ?? 0)
            guard let id: Int64 = try? row.decode(forColumn: "id") else { continue }
            names[id] = try? row.decode(String.self, forColumn: "identifier")
            if (try? row.decode(Bool.self, forColumn: "synchronized")) == false, let name = names[id],
                !saved.unsynchronized.contains(name)
            {
                saved.unsynchronized.append(name)
            }
        }
        return names
    }

    /// Reads the changes of all replicas.
    /// - Parameters:
    ///   - names: the stores' identifiers by their rows.
    ///   - current: the current account's row.
    private func readReplicas(
        of names: [Int64: String], current: Int64?, into saved: inout Saved, _ db: Database,
        _ found: ([SavedChange]) throws -> Void
    ) throws {
        var patience = RangeReader.patience
        for row in rows(of: "replica", db) {
            guard let account: Int64 = try? row.decode(forColumn: "account"),
                let id: Int64 = try? row.decode(forColumn: "id"),
                let store: Int64 = try? row.decode(forColumn: "store"), let name = names[store]
            else { continue }
            let last = lastRows(of: id, &patience, db).filter { $0.sequence > 0 }
            saved.generation = last.reduce(saved.generation) { max($0, $1.generation) }
            guard let owner = owner(account, current: current, saved, db) else { continue }
            let published = (try? row.counter("published")) ?? 0
            // Values without an account, and device-local ones, exist nowhere else. A store that isn't synced does not
            // come back from the remote either, nor does anything while no account is signed in.
            let isOnlyHere =
                account <= 0 || !isSignedIn && current.map { $0 == account } != false
                || account == current && saved.unsynchronized.contains(name)
            let changes = last.compactMap { row -> SavedChange? in
                let isPending = row.isOwn && row.sequence > published
                guard isPending || isOnlyHere else { return nil }
                // What follows an account's values keeps its stamp, so that it and what is written after it still do. It may
                // be a removal.
                let keepsStamp = account > 0 && !row.isProvisional
                guard isValue(row, in: name) || keepsStamp && isRemoval(row) else { return nil }
                return SavedChange(store: name, account: owner, row: row, isProvisional: !keepsStamp)
            }
            saved.changes += changes.count
            saved.values += changes.count { $0.row.value != nil }
            try found(changes)
        }
    }

    /// Returns the identifier of the account that gets a replica's values; `nil` if it can't be determined.
    /// - Parameter current: the current account's row.
    private func owner(_ account: Int64, current: Int64?, _ saved: Saved, _ db: Database) -> String? {
        // Values that were written before any sign-in are offered to the account that was entered since.
        if account == Account.none { return saved.account ?? "" }
        if account == current, let known = saved.account { return known }
        return (try? db.account(account))?.identifier
    }

    private func isRemoval(_ row: SavedRow) -> Bool {
        row.isNull && !row.isDropped && row.key.violation(limit: limits.keyLength) == nil
    }

    private func isValue(_ row: SavedRow, in store: String) -> Bool {
        let limits = Store.isLayer(store) ? Limits.domain : limits
        guard row.key.violation(limit: limits.keyLength) == nil, let value = row.value else { return false }
        return (try? Value.decode(value, limits: limits)) != nil
    }

    /// How many rows of a small table are read from each end: more than a user has stores and domains.
    private static let mostRows = 1 << 17

    /// Returns the rows of a small table, read from both ends up to the damage.
    private func rows(of table: String, _ db: Database) -> [Row] {
        var rows: [Int64: Row] = [:]
        for order in ["ASC", "DESC"] {
            let isWhole = try? add("SELECT * FROM \(table) ORDER BY id \(order)", to: &rows, db)
            if isWhole == true { break }
        }
        return rows.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Adds rows by their identifiers, up to one that was read before: a damaged tree may lead back to it again and again.
    /// - Returns: whether the end was reached.
    private func add(_ sql: String, to rows: inout [Int64: Row], _ db: Database) throws -> Bool {
        let cursor = try Row.fetchCursor(db, sql: sql + " LIMIT \(Self.mostRows)")
        while let row = try cursor.next() {
            let id: Int64 = try row.decode(forColumn: "id")
            guard rows[id] == nil else { return false }
            rows[id] = row.copy()
        }
        return rows.count < Self.mostRows
    }

    /// Returns the last row of each key that could be read, in the order of their sequences.
    /// - Parameter patience: how many more times to continue after damage, in all replicas.
    private func lastRows(of replica: Int64, _ patience: inout Int, _ db: Database) -> [SavedRow] {
        var last: [Key: SavedRow] = [:]
        var reader = RangeReader(db, replica: replica, patience: patience) { row in
            if (last[row.key]?.sequence ?? 0) <= row.sequence { last[row.key] = row }
        }
        reader.read(from: 1, to: ChangeID.lastSequence - 1)
        // What is intact needs none.
        patience = max(1, reader.patience)
        return last.values.sorted { $0.sequence < $1.sequence }
    }
}

/// The columns of a row of `change` that are needed here.
struct SavedRow {
    let sequence: UInt64
    let generation: UInt64
    let key: Key
    let value: [UInt8]?
    let wall: Int64
    let counter: Int64
    let isOwn: Bool
    let isDropped: Bool
    /// Whether there is no value, also none that can't be read.
    let isNull: Bool
    let isProvisional: Bool

    /// Decodes a row; `nil` if its key or cause is invalid.
    init?(_ row: Row, sequence: UInt64) {
        guard let key = try? row.decode(Data.self, forColumn: "key"),
            let cause = (try? row.decode(Int64.self, forColumn: "cause")).flatMap(Cause.init)
        else { return nil }
        self.sequence = sequence
        self.key = Key(unchecked: String(decoding: key, as: UTF8.self))
        generation = (try? row.counter("generation")) ?? 0
        value =
            cause == .dropped ? nil : (try? row.decode(Data?.self, forColumn: "value")).flatMap { $0.map(Array.init) }
        wall = min(max(0, (try? row.decode(forColumn: "wall")) ?? 0), Int64(Stamp.wallLimit) - 1)
        counter = min(max(0, (try? row.decode(forColumn: "counter")) ?? 0), Int64(UInt16.max))
        isOwn = cause.isOwn
        isDropped = cause == .dropped
        isNull = (row["value"] as DatabaseValue?)?.isNull == true
        isProvisional = (try? row.decode(Bool.self, forColumn: "provisional")) ?? true
    }
}

/// Reads a replica's changes around damage: from below, from above, and then what lies between, in halves.
private struct RangeReader {
    private let db: Database
    private let replica: Int64
    private let found: (SavedRow) -> Void
    /// How many more times to continue after damage.
    private(set) var patience: Int
    /// How many times in a database. With a damaged root, no attempt finds anything.
    static let patience = 2000

    init(_ db: Database, replica: Int64, patience: Int, found: @escaping (SavedRow) -> Void) {
        self.db = db
        self.replica = replica
        self.patience = patience
        self.found = found
    }

    mutating func read(from low: UInt64, to high: UInt64) {
        guard low <= high, patience > 0 else { return }
        var (below, above) = (low - 1, high + 1)
        if readUntilDamage(low...high, order: "ASC", { below = $0 }) { return }
        patience -= 1
        guard below < high else { return }
        if readUntilDamage((below + 1)...high, order: "DESC", { above = $0 }) { return }
        guard above - below > 2 else { return }
        let middle = below + (above - below) / 2
        read(from: below + 1, to: middle)
        read(from: middle + 1, to: above - 1)
    }

    /// - Returns: whether the whole range was read.
    private func readUntilDamage(_ range: ClosedRange<UInt64>, order: String, _ passed: (UInt64) -> Void) -> Bool {
        do {
            let cursor = try Row.fetchCursor(
                db,
                sql: """
                    SELECT sequence, generation, key, value, provisional, wall, counter, cause FROM change
                    WHERE id BETWEEN ? AND ? ORDER BY id \(order)
                    """,
                arguments: [ChangeID.of(replica, range.lowerBound), ChangeID.of(replica, range.upperBound)])
            var last: UInt64?
            while let row = try cursor.next() {
                let sequence = try row.counter("sequence")
                // A damaged tree may lead back to rows that were read before.
                let isOnward = last.map { order == "ASC" ? sequence > $0 : sequence < $0 } ?? true
                guard isOnward, range.contains(sequence) else { return false }
                last = sequence
                passed(sequence)
                if let saved = SavedRow(row, sequence: sequence) { found(saved) }
            }
            return true
        } catch {
            return false
        }
    }
}
