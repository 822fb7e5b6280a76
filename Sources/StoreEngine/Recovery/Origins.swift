// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import Replication

/// The origins under which this device writes and has written.
package struct Origins {
    /// The origin under which this device writes.
    package private(set) var current: Origin
    /// How often a publication under ``current`` has begun.
    package private(set) var publicationCount: UInt64
    /// Whether the current origin has a row in the database. It gets one with the first write under it.
    private(set) var isStored: Bool

    private let connection: Connection
    private let environment: Environment
    private let record: OriginRecord
    /// The word that was written when the database was last closed: see ``OriginRecord``.
    private let endWord: UInt64?

    /// Reads the origin that was last in use, or takes a new one.
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

    /// Keeps the present origin if this is the database that the last process left. Otherwise takes a new one, because
    /// another device may have the same disk contents. The new origin is stored with the first change under it; until
    /// then every start takes another one.
    ///
    /// Changes that were written before an account's values arrived get dots under the new origin. So on each copy of a
    /// disk they give way to those values, or are uploaded, separately.
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
                sql: "UPDATE OR FAIL change SET origin = ? WHERE id IN (\(Self.defaults))",
                arguments: [Int64(bitPattern: next.bits)])
            return true
        }
    }

    /// SQL: the rows that this device wrote before an account's values arrived.
    private static let defaults = """
        SELECT change.id FROM replica JOIN change ON \(ChangeID.isOf("replica.id"))
        WHERE account > 0 AND NOT downloaded AND \(Cause.isOwn)
        """

    /// Writes the same word to the database and to `/run`, as the last write, so that the next start keeps the origin.
    func writeShutdownToken() {
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

    /// Draws an origin for ``adopt(_:)``. Its row is written in the transaction that makes it necessary.
    ///
    /// Otherwise a crash after that transaction would bring back the former origin, and its dots would be used again.
    func draw() -> Origin { Origin(bits: environment.random()) }

    /// Continues under an origin that is already in the database.
    mutating func adopt(_ origin: Origin) { go(on: origin, isStored: true) }

    /// Notes that the row of ``current`` is in the database.
    mutating func noteStored() { isStored = true }

    private mutating func go(on origin: Origin, isStored: Bool) {
        (current, publicationCount, self.isStored) = (origin, 0, isStored)
    }

    /// Returns the origins under which this device wrote before, oldest first.
    package func former() throws(EngineError) -> [Origin] {
        try connection.read { db in
            try Int64.fetchAll(db.cachedStatement(sql: "SELECT bits FROM origin ORDER BY position"))
                .map { Origin(bits: UInt64(bitPattern: $0)) }
                .filter { $0 != current }
        }
    }

    /// Whether this device writes, or wrote, under an origin. It may have had any number of them.
    package func isOwn(_ origin: Origin) throws(EngineError) -> Bool {
        if origin == current { return true }
        return try connection.read { db in
            let statement = try db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM origin WHERE bits = ?)")
            return try Bool.fetchOne(statement, arguments: [Int64(bitPattern: origin.bits)]) ?? false
        }
    }

    // MARK: Publishing

    /// Returns how often a publication has begun under each origin of this device.
    package func publicationCounts() throws(EngineError) -> [Origin: UInt64] {
        try connection.read { db in
            let rows = try Row.fetchAll(db.cachedStatement(sql: "SELECT bits, publications FROM origin"))
            return try Dictionary(
                rows.map {
                    (Origin(bits: UInt64(bitPattern: try $0.decode(forColumn: "bits"))), try $0.counter("publications"))
                }
            ) { max($0, $1) }
        }
    }

    /// Counts an upload that is about to begin, so that what it leaves in the remote is known as this device's, and not
    /// a clone's, once the device has another origin. Call ``UserDatabase/synchronize()`` before the upload.
    package mutating func willPublish() throws(EngineError) {
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
    /// The origin under which this device writes.
    package var origin: Origin { origins.current }

    /// Continues under a new origin, because another device writes under the present one too.
    ///
    /// One dot may now name two writes, so nothing that is known about these dots holds. What was written here gets
    /// dots under the new origin. The version vectors here no longer contain the old one, so that the other device's
    /// writes are new to this device, and don't seem removed. Values stay as they are, and all of them are uploaded
    /// again.
    package func leaveOrigin() throws(EngineError) { try leave([origin]) }

    /// Continues under a new origin, as ``leaveOrigin()`` does, if one of these origins, under which another device
    /// writes, is or was this device's.
    /// - Returns: whether one is or was.
    package func leaveOrigins(among shared: Set<Origin>) throws(EngineError) -> Bool {
        if shared.isEmpty { return false }
        let left = shared.intersection(try origins.former() + [origin])
        if left.isEmpty { return false }
        try leave(left)
        return true
    }

    private func leave(_ left: Set<Origin>) throws(EngineError) {
        try checkDisk(forChangesOf: "true")
        try commit()
        summaries.settle()
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
    /// sequence becomes its n, as for every write of this device.
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
                UPDATE OR FAIL replica SET published = 0, pending = NULL
                    WHERE id IN (SELECT replica FROM change WHERE origin = ?)
                """,
            arguments: [Int64(bitPattern: left.bits)])
        try execute(
            sql: """
                UPDATE OR FAIL change
                    SET origin = :next, n = NULL, cause = iif(\(Cause.isOwn), cause, \(Cause.written.rawValue))
                    WHERE origin = :left AND (\(Cause.isOwn) OR (\(isEntry)))
                """,
            arguments: arguments)
        try execute(sql: "DELETE FROM context WHERE origin = ?", arguments: [Int64(bitPattern: left.bits)])
    }

    /// Adds a row for an origin unless it has one.
    func saveOrigin(_ origin: Origin) throws {
        try run(
            sql: "INSERT OR IGNORE INTO origin (bits) VALUES (?)", arguments: [Int64(bitPattern: origin.bits)])
    }
}
