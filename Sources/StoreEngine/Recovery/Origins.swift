// SPDX-License-Identifier: Apache-2.0

internal import GRDB
public import Replication

/// The random names under which this device writes: the present one, and those before it.
public struct Origins {
    /// The one that this device writes under.
    public private(set) var current: Origin
    /// How often something was about to be published under ``current``.
    public private(set) var publicationCount: UInt64
    /// Whether its row is in the database; one under which nothing was written has none.
    private(set) var isStored: Bool

    private let connection: Connection
    private let environment: Environment
    private let record: OriginRecord
    /// What was written when the database was closed last: see ``OriginRecord``.
    private let endWord: UInt64?

    /// The origin that was in use last.
    init(
        _ db: Database, on connection: Connection, _ record: OriginRecord, endWord: UInt64?, _ environment: Environment
    ) throws {
        (self.connection, self.environment) = (connection, environment)
        (self.record, self.endWord) = (record, endWord)
        (current, publicationCount, isStored) = (Origin(bits: environment.random()), 0, false)
        let row = try Row.fetchOne(
            db.cachedStatement(sql: "SELECT bits, publications FROM origin ORDER BY position DESC LIMIT 1"))
        guard let row else { return }
        current = Origin(bits: UInt64(bitPattern: try row.decode(forColumn: "bits")))
        publicationCount = try row.counter("publications")
        isStored = true
    }

    // MARK: Starting and ending

    /// Goes on under the present origin if this is the database that was left, and else under a new one: what is on
    /// this disk may be somebody else's as well. It is stored with the first change that is made under it; until then
    /// every start draws another one.
    ///
    /// What was written before an account's values arrived takes dots under it: of each copy of a disk it gives way to
    /// these, or goes up, by itself.
    mutating func start() throws(EngineError) {
        let left = record.take()
        guard Rule.freshOrigins.isOn, left == nil || left != endWord else { return }
        let next = draw()
        go(on: next, isStored: false)
        isStored = try connection.write { db in
            guard try Row.fetchOne(db, sql: "\(Self.defaults) LIMIT 1") != nil else { return false }
            try db.saveOrigin(next)
            try db.execute(
                sql: """
                    DELETE FROM context WHERE replica IN (SELECT id FROM replica WHERE account > 0 AND NOT downloaded)
                    """)
            try db.execute(
                sql: "UPDATE change SET origin = ? WHERE id IN (\(Self.defaults))",
                arguments: [Int64(bitPattern: next.bits)])
            return true
        }
    }

    /// The rows of what was written before an account's values arrived.
    private static let defaults = """
        SELECT change.id FROM replica JOIN change ON \(ChangeID.isOf("replica.id"))
        WHERE account > 0 AND NOT downloaded AND \(Cause.isOwn)
        """

    /// The last thing that is written, here and to `/run`, so that the next start goes on under the origin.
    func leaveEndWord() {
        guard isStored, connection.isOpen else { return }
        let drawn = environment.random()
        let word = try? connection.write { db in
            if let endWord, db.totalChangesCount == 0 { return endWord }
            try db.setProperty("end", Int64(bitPattern: drawn))
            return drawn
        }
        if let word { record.leave(word) }
    }

    // MARK: Another one

    /// Draws an origin for ``adopt(_:)``, whose row is written in the transaction that makes it necessary.
    ///
    /// A crash after that transaction must not bring the former origin back: its dots would be used again.
    func draw() -> Origin { Origin(bits: environment.random()) }

    /// Goes on under an origin that is in the database already.
    mutating func adopt(_ origin: Origin) { go(on: origin, isStored: true) }

    /// The row of ``current`` is in the database.
    mutating func noteStored() { isStored = true }

    private mutating func go(on origin: Origin, isStored: Bool) {
        (current, publicationCount, self.isStored) = (origin, 0, isStored)
    }

    /// The origins under which this device wrote before, oldest first.
    public func former() throws(EngineError) -> [Origin] {
        try connection.read { db in
            try Int64.fetchAll(db.cachedStatement(sql: "SELECT bits FROM origin ORDER BY position"))
                .map { Origin(bits: UInt64(bitPattern: $0)) }
                .filter { $0 != current }
        }
    }

    // MARK: Publishing

    /// How often something was about to be published, under each origin of this device.
    public func publicationCounts() throws(EngineError) -> [Origin: UInt64] {
        try connection.read { db in
            let rows = try Row.fetchAll(db.cachedStatement(sql: "SELECT bits, publications FROM origin"))
            return try Dictionary(
                rows.map {
                    (Origin(bits: UInt64(bitPattern: try $0.decode(forColumn: "bits"))), try $0.counter("publications"))
                }
            ) { max($0, $1) }
        }
    }

    /// Counts an upload that is about to begin, so that what it leaves in the remote is known as this device's, and no
    /// copy's, when the origin is another one. To be followed by ``UserDatabase/synchronize()``.
    public mutating func willPublish() throws(EngineError) {
        guard Rule.recordFirst.isOn else { return }
        let (origin, count) = (current, publicationCount + 1)
        try connection.write { db in
            try db.saveOrigin(origin)
            try db.run(
                sql: "UPDATE origin SET publications = ? WHERE bits = ?",
                arguments: [Int64(bitPattern: count), Int64(bitPattern: origin.bits)])
        }
        (publicationCount, isStored) = (count, true)
    }
}

// MARK: - A clone

extension UserDatabase {
    /// The random name under which this device writes.
    public var origin: Origin { origins.current }

    /// Goes on under a new origin, since somebody else writes under the present one as well.
    ///
    /// One dot may name two writes now, so that what is said of these dots is worth nothing. What was written here
    /// takes dots under the new origin, which name nothing else; and no version vector here claims the old ones any more,
    /// so that the other's writes are new to this device and not taken for gone. Values stay as they are; all of
    /// them are uploaded anew.
    public func leaveOrigin() throws(EngineError) { try leave([origin]) }

    /// Goes on under a new origin, as ``leaveOrigin()``, if somebody else writes under one of these that is, or was,
    /// this device's.
    /// - Returns: whether one is.
    public func leaveOrigins(among shared: Set<Origin>) throws(EngineError) -> Bool {
        if shared.isEmpty { return false }
        let left = shared.intersection(try origins.former() + [origin])
        if left.isEmpty { return false }
        try leave(left)
        return true
    }

    private func leave(_ left: Set<Origin>) throws(EngineError) {
        try commit()
        let next = origins.draw()
        try write { db in
            try db.saveOrigin(next)
            for origin in left.sorted() { try db.replaceOrigin(origin, by: next) }
        }
        origins.adopt(next)
        for store in loadedStores { try reload(store) }
    }
}

extension Database {
    /// Gives what was written under an origin, and what came back of it from a remote, dots under another one. A row's
    /// sequence is its n, as it is for every write of this device.
    fileprivate func replaceOrigin(_ left: Origin, by next: Origin) throws {
        let arguments: StatementArguments = [
            "left": Int64(bitPattern: left.bits), "next": Int64(bitPattern: next.bits),
        ]
        let isEntry = """
            cause <> \(Cause.dropped.rawValue) AND id =
                (SELECT max(id) FROM change AS last
                 WHERE \(ChangeID.isOf("change.replica", "last")) AND last.key = change.key)
            """
        try execute(
            sql: """
                UPDATE replica SET published = 0 WHERE id IN (SELECT replica FROM change WHERE origin = ?)
                """,
            arguments: [Int64(bitPattern: left.bits)])
        try execute(
            sql: """
                UPDATE change SET origin = :next, n = NULL, cause = iif(\(Cause.isOwn), cause, \(Cause.written.rawValue))
                    WHERE origin = :left AND (\(Cause.isOwn) OR (\(isEntry)))
                """,
            arguments: arguments)
        try execute(sql: "DELETE FROM context WHERE origin = ?", arguments: [Int64(bitPattern: left.bits)])
    }

    /// Adds an origin's row where it has none.
    func saveOrigin(_ origin: Origin) throws {
        try run(
            sql: "INSERT OR IGNORE INTO origin (bits) VALUES (?)", arguments: [Int64(bitPattern: origin.bits)])
    }
}
