// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
public import PropertyList

/// An account whose values this device has, or had.
public struct Account: Equatable, Sendable {
    let id: Int64
    /// The random identifier that is in the remote; empty for the values of somebody who never signed in.
    public let identifier: String
    /// Where the last complete download ended, as its backend understands it; `nil`: none was complete.
    public let cursor: [UInt8]?

    /// The first download is complete.
    public var isDownloaded: Bool { cursor != nil }

    static let none: Int64 = 0
    static let device: Int64 = -1

    init(row: Row) throws {
        id = try row.decode(forColumn: "id")
        identifier = try row.decode(forColumn: "identifier")
        cursor = try row.decode(Data?.self, forColumn: "cursor").map(Array.init)
    }
}

/// The facts about a database that its table `property` holds.
struct DatabaseProperties {
    let generationBase: UInt64
    let account: Account
    let backdrop: Account?
    let isAwaitingRemote: Bool

    init(_ db: Database, now: UInt64) throws {
        // A clock in the year 146000 is wrong.
        if try db.property("generation") == nil { try db.setProperty("generation", Int64(min(now, 1 << 61))) }
        guard let generation = UInt64(counting: try db.property("generation") ?? 0) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "an impossible generation")
        }
        generationBase = generation
        guard let account = try db.account(try db.property("account") ?? Account.none) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "the current account has no row")
        }
        self.account = account
        backdrop = try db.property("backdrop").flatMap { try db.account($0) }
        isAwaitingRemote = try db.property("awaiting-remote") == 1
    }
}

extension Database {
    func property(_ name: String) throws -> Int64? {
        try Row.fetchOne(self, sql: "SELECT value FROM property WHERE name = ?", arguments: [name])?
            .decode(atIndex: 0)
    }

    func setProperty(_ name: String, _ value: Int64?) throws {
        try execute(
            sql: "INSERT OR REPLACE INTO property (name, value) VALUES (?, ?)", arguments: [name, value])
    }

    func account(_ id: Int64) throws -> Account? {
        try Row.fetchOne(self, sql: "SELECT * FROM account WHERE id = ?", arguments: [id])
            .map(Account.init(row:))
    }

    func account(named identifier: String) throws -> Account? {
        try Row.fetchOne(self, sql: "SELECT * FROM account WHERE identifier = ?", arguments: [identifier])
            .map(Account.init(row:))
    }
}

/// What a change of the account did to a store that is loaded.
public struct StoreViewChange {
    /// The store.
    public let store: Store
    /// The keys whose visible value is another one now, sorted.
    public let keys: [Key]

    init(store: Store, since before: [Key: Value]) {
        self.store = store
        let after = store.values
        keys = Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }.sorted()
    }
}

extension UserDatabase {
    /// Whether the values shown are those of an account, signed in or not.
    public var hasAccount: Bool { account.id != Account.none }

    /// A random name of this device, which stays as long as the database lives: 16 hexadecimal digits.
    public func deviceIdentifier() throws(EngineError) -> String {
        let drawn = Int64(bitPattern: environment.random())
        let bits = try write { db in
            if let bits = try db.property("device") { return bits }
            try db.setProperty("device", drawn)
            return drawn
        }
        return Origin(bits: UInt64(bitPattern: bits)).description
    }

    /// Makes an account the current one.
    ///
    /// What somebody who never signed in has written becomes provisional writes to the account. The values of
    /// another account stay with it; they are shown until those of the new one have arrived.
    /// - Parameters:
    ///   - identifier: the account's.
    ///   - bringsValues: the visible values are written to the account, which is new and empty.
    /// - Returns: the stores that are loaded, with what changed in them.
    public func enter(account identifier: String, bringingValues bringsValues: Bool) throws(EngineError)
        -> [StoreViewChange]
    {
        if account.identifier == identifier { return [] }
        let (former, shown) = (account, [account, backdrop].compactMap { $0 })
        return try changingView { db in
            try db.execute(sql: "INSERT OR IGNORE INTO account (identifier) VALUES (?)", arguments: [identifier])
            guard let entered = try db.account(named: identifier), entered.id > 0 else {
                throw EngineError.storage("an account can't be named \"\(identifier)\"")
            }
            try db.saveOrigin(origin)
            if former.id == Account.none {
                try offerUnsignedValues(to: entered, db)
            } else if bringsValues {
                for account in shown {
                    try db.carry(from: account, to: entered, under: origin, time: environment.time())
                }
            }
            let keepsFormer = former.id != Account.none && !entered.isDownloaded && !bringsValues
            return (entered, backdrop: keepsFormer ? former : nil)
        }
    }

    /// Forgets the values of the current account on this device, history included.
    public func clearAccount() throws(EngineError) -> [StoreViewChange] {
        let cleared = account
        let origin = drawOrigin()
        let changes = try changingView { db in
            try db.saveOrigin(origin)
            try db.deleteReplicas("account = ?", [cleared.id])
            try db.execute(sql: "UPDATE account SET cursor = NULL WHERE id = ?", arguments: [cleared.id])
            guard let none = try db.account(Account.none) else { throw EngineError.corrupt("an account has no row") }
            return (none, backdrop: nil)
        }
        adopt(origin)
        return changes
    }

    /// Goes on with the current account under the smaller identifier of two that are the same account.
    public func rename(accountTo identifier: String) throws(EngineError) {
        try commit()
        let current = account
        let id = current.id
        account = try write { db in
            if let other = try db.account(named: identifier), other.id != id {
                guard other.id > 0 else { throw EngineError.storage("an account can't be named \"\(identifier)\"") }
                // The device was signed in to it under this name as well. It is one account: what is pending there
                // goes on here.
                try db.saveOrigin(origin)
                try db.carry(
                    from: other, to: current, under: origin, time: environment.time(),
                    where: "cause IN (0, 3) AND sequence > published")
                try db.deleteReplicas("account = ?", [other.id])
                try db.execute(sql: "DELETE FROM account WHERE id = ?", arguments: [other.id])
                try skipReplicaIDs(db)
            }
            try db.execute(sql: "UPDATE account SET identifier = ? WHERE id = ?", arguments: [identifier, id])
            return try db.account(id) ?? account
        }
        for store in loadedStores { try reload(store) }
    }

    /// Records where a complete download ended, after its changes were committed.
    ///
    /// After the first one, every store of the account has what the account has.
    /// - Returns: the stores that are loaded and had not been told, with what changed in them: values of the
    ///   account before that were still shown.
    @discardableResult
    public func completeDownload(cursor: [UInt8]) throws(EngineError) -> [StoreViewChange] {
        let (id, hadBackdrop) = (account.id, backdrop != nil)
        let late = loadedStores.filter { !$0.shared.isDownloaded }.map { ($0, $0.values) }
        account = try write { db in
            if hadBackdrop { try db.raiseGenerations() }
            try db.execute(sql: "UPDATE account SET cursor = ? WHERE id = ?", arguments: [Data(cursor), id])
            try db.execute(sql: "UPDATE replica SET downloaded = 1 WHERE account = ?", arguments: [id])
            try db.setProperty("backdrop", nil)
            try db.setProperty("awaiting-remote", nil)
            return try db.account(id) ?? account
        }
        backdrop = nil
        isAwaitingRemote = false
        if hadBackdrop { for store in loadedStores { try reload(store) } }
        return late.map { store, before in
            store.shared.isDownloaded = true
            return StoreViewChange(store: store, since: before)
        }
    }

    /// The stores of the account whose first download is still to be completed.
    public func storesAwaitingDownload() throws(EngineError) -> [String] {
        try storeIdentifiers(where: "replica.account = ? AND NOT replica.downloaded", [account.id])
    }

    /// The stores that hold something in the current account.
    public func accountStores() throws(EngineError) -> [AccountStore] {
        try read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT identifier, published, max(replica.sequence,
                        coalesce((SELECT max(sequence) FROM change WHERE replica = replica.id), 0)) AS last
                    FROM replica JOIN store ON store.id = replica.store WHERE account = ? ORDER BY identifier
                    """,
                arguments: [account.id]
            ).map { row in
                AccountStore(
                    identifier: row["identifier"], sequence: UInt64(bitPattern: row["last"]),
                    published: UInt64(bitPattern: row["published"]))
            }
        }
    }

    /// How many keys have a change that the remote does not have, in all stores of the account.
    public func pendingChanges() throws(EngineError) -> Int {
        try read { db in
            try Int.fetchOne(
                db,
                sql: """
                    SELECT count(*) FROM (
                        SELECT max(change.sequence), cause FROM replica JOIN change ON change.replica = replica.id
                        WHERE account = ? AND change.sequence > published GROUP BY replica.id, key)
                    WHERE cause IN (0, 3)
                    """,
                arguments: [account.id]) ?? 0
        }
    }

    /// Marks what the remote has acknowledged: of each store the sequence up to which it has it.
    /// - Parameter origin: under which it was uploaded; if the device goes on under another one meanwhile,
    ///   sequences may have begun anew, and nothing is marked.
    public func markPublished(_ sequences: [String: UInt64], under origin: Origin) throws(EngineError) {
        guard origin == self.origin else { return }
        let account = account.id
        let lastSequence = """
            max(sequence, coalesce((SELECT max(change.sequence) FROM change WHERE change.replica = replica.id), 0))
            """
        try write { db in
            for (identifier, sequence) in sequences {
                try db.execute(
                    sql: """
                        UPDATE replica SET published = max(published, min(?, \(lastSequence)))
                        WHERE account = ? AND store = (SELECT id FROM store WHERE identifier = ?)
                        """,
                    arguments: [Int64(bitPattern: sequence), account, identifier])
            }
        }
        for store in loadedStores where store.shared.account == account {
            if let sequence = sequences[store.identifier] {
                store.shared.published = max(store.shared.published, min(sequence, store.shared.sequence))
            }
        }
    }

    // MARK: Parts

    /// Makes another account the current one, in one transaction with what `body` does.
    private func changingView(
        _ body: (Database) throws -> (account: Account, backdrop: Account?)
    ) throws(EngineError) -> [StoreViewChange] {
        try commit()
        let before = loadedStores.map { ($0, $0.values) }
        let current = try write { db in
            // Before it, as changes that go may be the only ones that know how far a store had come.
            try db.raiseGenerations()
            let current = try body(db)
            try db.setProperty("account", current.account.id)
            try db.setProperty("backdrop", current.backdrop?.id)
            try skipReplicaIDs(db)
            return current
        }
        (account, backdrop) = (current.account, current.backdrop)
        for (store, _) in before { try reload(store) }
        return before.map { StoreViewChange(store: $0, since: $1) }
    }

    func reload(_ store: Store) throws(EngineError) {
        let fresh = try read { db in try Store(store.identifier, in: self, localKeys: store.localKeys, db: db) }
        store.takeOver(fresh)
    }

    /// Turns what was written before the first sign-in into provisional writes to an account.
    ///
    /// The values keep their order in time but are written under the present origin; tombstones and what was
    /// dropped stay behind, since nothing that was removed before may remove anything of the account.
    private func offerUnsignedValues(to account: Account, _ db: Database) throws {
        let unsigned = "(SELECT id FROM replica WHERE account = \(Account.none))"
        try db.execute(sql: "DELETE FROM context WHERE replica IN \(unsigned)")
        try db.execute(
            sql: """
                UPDATE change SET provisional = 1, n = NULL, cause = iif(value IS NULL, :dropped, cause),
                    origin = :origin WHERE replica IN \(unsigned)
                """,
            arguments: ["dropped": Cause.dropped.rawValue, "origin": Int64(bitPattern: origin.bits)])
        try db.execute(
            sql: """
                UPDATE replica SET account = :account, published = 0, downloaded = :downloaded
                    WHERE account = \(Account.none) AND NOT EXISTS
                    (SELECT 1 FROM replica AS other WHERE other.account = :account AND other.store = replica.store)
                """,
            arguments: ["account": account.id, "downloaded": account.isDownloaded])
        // What is left belongs to stores that the account has on this device already.
        guard let none = try db.account(Account.none) else { throw EngineError.corrupt("an account has no row") }
        try db.carry(from: none, to: account, under: origin, time: environment.time())
        try db.deleteReplicas("account = ?", [Account.none])
    }

    private func storeIdentifiers(where condition: String, _ arguments: StatementArguments) throws(EngineError)
        -> [String]
    {
        try read { db in
            try String.fetchAll(
                db,
                sql: """
                    SELECT identifier FROM replica JOIN store ON store.id = replica.store
                    WHERE \(condition) ORDER BY identifier
                    """,
                arguments: arguments)
        }
    }
}

/// A store of the current account, without its values.
public struct AccountStore: Equatable, Sendable {
    /// The store's identifier.
    public let identifier: String
    /// Its last change.
    public let sequence: UInt64
    /// The remote has acknowledged every change up to this one.
    public let published: UInt64
}

extension Database {
    /// Writes the values of one account to another, as provisional writes under an origin: those of keys that the
    /// other one knows nothing of. Tombstones stay behind.
    func carry(
        from source: Account, to target: Account, under origin: Origin, time: UInt64, where condition: String = "true"
    ) throws {
        let accounts: StatementArguments = ["source": source.id, "target": target.id]
        try execute(
            sql: """
                INSERT OR IGNORE INTO replica (store, account, downloaded)
                    SELECT store, :target, (SELECT cursor IS NOT NULL FROM account WHERE id = :target)
                    FROM replica WHERE account = :source
                """,
            arguments: accounts)
        try execute(
            sql: """
                INSERT INTO change
                    (replica, sequence, generation, key, value, provisional, wall, counter, origin, cause, time)
                SELECT target, last + row_number() OVER (PARTITION BY target ORDER BY sequence),
                    generation, key, value, 1, wall, counter, :origin, :cause, :time
                FROM (
                    SELECT target.id AS target, source.published, change.*, max(change.sequence),
                        max(target.sequence, coalesce(
                            (SELECT max(sequence) FROM change WHERE change.replica = target.id), 0)) AS last
                    FROM replica AS source JOIN replica AS target USING (store)
                        JOIN change ON change.replica = source.id
                    WHERE source.account = :source AND target.account = :target GROUP BY target.id, key) AS carried
                WHERE value IS NOT NULL AND \(condition) AND NOT EXISTS
                    (SELECT 1 FROM change AS known WHERE known.replica = carried.target AND known.key = carried.key)
                """,
            arguments: accounts + [
                "origin": Int64(bitPattern: origin.bits), "cause": Cause.carried.rawValue,
                "time": Int64(bitPattern: time),
            ])
    }

    /// Gives every store a generation from which alone changes are known: its view may have become another one.
    func raiseGenerations() throws {
        try execute(
            sql: """
                UPDATE store SET generation = 1 + max(generation, coalesce(
                    (SELECT max(change.generation) FROM replica JOIN change ON change.replica = replica.id
                     WHERE replica.store = store.id), 0));
                UPDATE store SET known_from = generation
                """)
    }

    /// Deletes replicas with all their rows.
    func deleteReplicas(_ condition: String, _ arguments: StatementArguments) throws {
        for table in ["change", "context"] {
            try execute(
                sql: "DELETE FROM \(table) WHERE replica IN (SELECT id FROM replica WHERE \(condition))",
                arguments: arguments)
        }
        try execute(sql: "DELETE FROM replica WHERE \(condition)", arguments: arguments)
    }
}

extension Store {
    /// Becomes what was read anew from the database.
    func takeOver(_ fresh: Store) {
        id = fresh.id
        isStored = fresh.isStored
        isForgotten = fresh.isForgotten
        generation = max(generation, fresh.generation)
        knownFrom = fresh.knownFrom
        shared = fresh.shared
        overlay = fresh.overlay
        backdrop = fresh.backdrop
    }
}
