// SPDX-License-Identifier: Apache-2.0

// What happens to a damaged database.
//
// It is kept unchanged under another name, and a new one takes its place with what could be read. An account's values
// come back from its remote. So of an account, only changes that the remote doesn't have are saved: with their stamps,
// or as provisional writes if the account's values had not arrived, which win then. Values that may exist nowhere else
// are all saved: those written before any sign-in, device-local ones, those of stores that aren't synced, and those of
// an account that the user has signed out of.
//
// The order is: build the new database beside the damaged one, rename the damaged one with its log, rename the new one.
// Until the first rename nothing has happened. After it the new database is complete, and the next process that opens
// the directory finishes the rest.

internal import Foundation
internal import GRDB
internal import Glibc
internal import PropertyList
internal import Replication

/// The result of setting a damaged database aside.
package struct SalvageReport: Equatable, Sendable {
    /// The damaged database's new file name, in the same directory; `nil` if the file was gone.
    package let fileName: String?
    /// The number of values that were read and are in the new database.
    package let salvagedValues: Int
    /// The identifier of the account whose values are to come back from its remote; `nil` if none is known.
    package let account: String?
}

/// The steps of setting a database aside.
struct Salvage {
    let directory: String
    let time: UInt64
    let limits: Limits
    let isSignedIn: Bool

    var path: String { directory + "/" + DatabaseFile.name }
    private static let newSuffix = ".new"
    private static let suffixes = ["", "-wal", "-shm"]

    // MARK: Renaming

    /// Renames the damaged database, and returns its new name.
    func setAside() throws -> String? {
        let base = DatabaseFile.name + ".damaged-" + Self.text(of: time)
        var name = base
        var count = 1
        while Self.suffixes.contains(where: { Self.exists(directory + "/" + name + $0) }) {
            count += 1
            name = "\(base)-\(count)"
        }
        let left = Self.suffixes.filter { Self.exists(path + $0) }
        for suffix in left { try Self.rename(path + suffix, to: directory + "/" + name + suffix) }
        return left.first.map { name + $0 }
    }

    /// Moves the new database into place, if the damaged one has been renamed.
    static func finish(in directory: String) throws {
        let path = directory + "/" + DatabaseFile.name
        guard exists(path + newSuffix), !exists(path) else { return }
        // A log that is still there belongs to the damaged database.
        for suffix in suffixes.dropFirst() { unlink(path + suffix) }
        try rename(path + newSuffix, to: path)
    }

    /// Moves the new database of another program's salvage into place, and removes what is left of it.
    static func finishForeign(in directory: String) throws {
        let path = directory + "/" + DatabaseFile.name
        unlink(path + "-journal")
        try finish(in: directory)
        for suffix in suffixes + ["-journal"] { unlink(path + newSuffix + suffix) }
    }

    private static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    private static func rename(_ old: String, to new: String) throws {
        guard Glibc.rename(old, new) == 0 else {
            throw EngineError.storage("renaming \(old): \(String(cString: strerror(errno)))")
        }
    }

    /// Formats a time, in microseconds since 1970, as `YYYY-MM-DDTHHMMSSZ`.
    static func text(of time: UInt64) -> String {
        var seconds = time_t(min(time / 1_000_000, 253_402_300_799))
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func digits(_ number: Int32, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        return digits(parts.tm_year + 1900, 4) + "-" + digits(parts.tm_mon + 1, 2) + "-" + digits(parts.tm_mday, 2)
            + "T" + digits(parts.tm_hour, 2) + digits(parts.tm_min, 2) + digits(parts.tm_sec, 2) + "Z"
    }

    // MARK: Building

    /// What could be read of the damaged database, besides its changes.
    struct Saved {
        /// The identifier of the current account; `nil` if it is not known.
        var account: String?
        /// The stores that aren't synced.
        var unsynchronized: [String] = []
        /// The identifiers of accounts that were opened with a key.
        var encrypted: Set<String> = []
        /// The former identifiers of accounts.
        var formerNames: [String: Set<String>] = [:]
        /// The greatest generation that was found.
        var generation: UInt64 = 0
        /// The number of changes that are in the new database.
        var changes = 0
        /// How many of them are values.
        var values = 0
    }

    /// A value, or a removal, that is worth saving.
    struct SavedChange {
        let store: String
        /// The identifier of the account that gets the value.
        let account: String
        let row: SavedRow
        /// Whether the account's value wins.
        let isProvisional: Bool
    }

    /// Builds the new database beside the damaged one. One replica at a time is in memory: there may be as many values as
    /// the service has memory for everybody.
    /// - Returns: what was read.
    func build(knownAccount: String?, origin: Origin) throws -> Saved {
        removeNew()
        do { return try buildNew(knownAccount: knownAccount, origin: origin) } catch {
            // On a full disk, others need the room.
            removeNew()
            throw error
        }
    }

    private func removeNew() {
        for suffix in Self.suffixes { unlink(path + Self.newSuffix + suffix) }
    }

    private func buildNew(knownAccount: String?, origin: Origin) throws -> Saved {
        let queue = try Connection.open(path + Self.newSuffix)
        let saved = try queue.write { db in
            var (saved, generation) = (Saved(account: knownAccount), UInt64(0))
            try read(into: &saved) { saved in
                generation = self.generation(after: saved)
                try begin(saved, generation: generation, db)
            } found: { changes in
                try write(changes, origin: origin, generation: generation, db)
            }
            try end(saved, origin: origin, generation: generation, db)
            return saved
        }
        // A single file, so that one rename moves it into place. The checkpoint also syncs it.
        try queue.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
        try queue.close()
        return saved
    }

    private func generation(after saved: Saved) -> UInt64 { min(max(time, saved.generation + 1), 1 << 61) }

    private func begin(_ saved: Saved, generation: UInt64, _ db: Database) throws {
        if let account = saved.account {
            try db.execute(sql: "INSERT INTO account (identifier) VALUES (?)", arguments: [account])
            try db.setProperty("account", db.lastInsertedRowID)
            if isSignedIn { try db.setProperty("awaiting-remote", 1) }
        }
        for store in saved.unsynchronized {
            try db.execute(
                sql: "INSERT INTO store (identifier, generation, known_from, synchronized) VALUES (?, ?, ?, 0)",
                arguments: [store, Int64(generation), Int64(generation)])
        }
    }

    /// Writes the changes of a replica.
    private func write(_ changes: [SavedChange], origin: Origin, generation: UInt64, _ db: Database) throws {
        guard let first = changes.first else { return }
        try db.execute(
            sql: "INSERT OR IGNORE INTO store (identifier, generation, known_from) VALUES (?, ?, ?)",
            arguments: [first.store, Int64(generation), Int64(generation)])
        try db.execute(sql: "INSERT OR IGNORE INTO account (identifier) VALUES (?)", arguments: [first.account])
        try db.execute(
            sql: """
                INSERT OR IGNORE INTO replica (store, account)
                    SELECT store.id, account.id FROM store, account
                    WHERE store.identifier = ? AND account.identifier = ?
                """,
            arguments: [first.store, first.account])
        for change in changes { try write(change, origin: origin, generation: generation, db) }
    }

    /// - Parameter generation: the one that was written, before all were known.
    private func end(_ saved: Saved, origin: Origin, generation: UInt64, _ db: Database) throws {
        let base = Int64(self.generation(after: saved))
        try db.setProperty("generation", base)
        if base != Int64(generation) {
            try db.execute(sql: "UPDATE OR FAIL store SET generation = ?, known_from = ?", arguments: [base, base])
            try db.execute(sql: "UPDATE OR FAIL change SET generation = ?", arguments: [base])
        }
        if saved.changes > 0 { try db.saveOrigin(origin) }
        for identifier in saved.encrypted.union(saved.formerNames.keys) {
            try db.execute(sql: "INSERT OR IGNORE INTO account (identifier) VALUES (?)", arguments: [identifier])
            guard let account = try db.account(named: identifier) else { continue }
            try db.saveEncrypted(saved.encrypted.contains(identifier), of: account.id)
            try db.saveFormerNames(saved.formerNames[identifier] ?? [], of: account.id)
        }
    }

    /// Writes a change as if before the account's values had arrived.
    private func write(_ change: SavedChange, origin: Origin, generation: UInt64, _ db: Database) throws {
        try db.execute(
            sql: """
                INSERT INTO change
                    (id, generation, key, value, provisional, wall, counter, origin, cause, time)
                SELECT \(ChangeID.of("replica.id", "1 + \(ChangeID.lastSequence(of: "replica.id"))")), ?, ?, ?, ?, ?, ?, ?, ?, ?
                FROM replica JOIN store ON store.id = replica.store JOIN account ON account.id = replica.account
                WHERE account.identifier = ? AND store.identifier = ?
                """,
            arguments: [
                Int64(generation), Data(change.row.key.string.utf8), change.row.value.map { Data($0) },
                change.isProvisional, change.row.wall, change.row.counter, Int64(bitPattern: origin.bits),
                Cause.written.rawValue,
                Int64(bitPattern: time), change.account, change.store,
            ])
    }
}
