// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import PropertyList
internal import Replication

/// What the next commit writes: changes of stores, and the work to do before them.
struct WriteBatch {
    /// The stores with staged changes. Each can revert its own.
    private var stores: [Store] = []
    private var newReplicas: [Replica] = []
    private var preparations: [(Database) throws -> Void] = []
    private var rows = ChangeRows()
    /// Whether the batch writes the row of the origin.
    private(set) var storesOrigin = false

    /// Whether there is nothing to write.
    var isEmpty: Bool { rows.rows.isEmpty && preparations.isEmpty }

    /// The size of the keys and values, in bytes.
    var bytes: Int { rows.bytes.count }

    // MARK: Staging

    /// Adds a store that is about to change, with its row if it has none.
    mutating func add(_ store: Store) {
        stores.append(store)
        guard !store.isStored else { return }
        let (id, identifier, base) = (store.id, store.identifier, Int64(bitPattern: store.generation))
        preparations.append { db in
            try db.run(
                sql: "INSERT INTO store (id, identifier, generation, known_from) VALUES (?, ?, ?, ?)",
                arguments: [id, identifier, base, base])
        }
    }

    /// Adds the row of an origin, once.
    mutating func add(_ origin: Origin) {
        if storesOrigin { return }
        storesOrigin = true
        preparations.append { try $0.saveOrigin(origin) }
    }

    /// Adds a change of a replica.
    mutating func add(
        _ row: ChangeRow, key: Key, content: Record.Content, of replica: Replica, in store: Store
    ) {
        add(replica, of: store)
        rows.append(row, key: key, content: content)
    }

    /// Adds work to do before the changes are written.
    mutating func prepare(_ body: @escaping (Database) throws -> Void) {
        preparations.append(body)
    }

    /// Adds the row of a replica if it has none.
    mutating func add(_ replica: Replica, of store: Store) {
        if replica.isStored || newReplicas.contains(where: { $0 === replica }) { return }
        newReplicas.append(replica)
        let row = (replica.id, store.id, replica.account, replica.isDownloaded)
        preparations.append { db in
            try db.run(
                sql: "INSERT INTO replica (id, store, account, downloaded) VALUES (?, ?, ?, ?)",
                arguments: [row.0, row.1, row.2, row.3])
        }
    }

    /// Adds the replicas' numbers of hidden entries, where they have changed.
    mutating func addHiddenCounts() {
        for store in stores {
            let (id, count) = (store.shared.id, store.shared.usage.hidden)
            if count == store.shared.storedHidden { continue }
            preparations.append {
                try $0.run(sql: "UPDATE replica SET hidden = ? WHERE id = ?", arguments: [count, id])
            }
        }
    }

    // MARK: Committing

    /// Whether the batch has only rows, which the writer can write in a transaction of its own.
    var isOnlyChanges: Bool { preparations.isEmpty }

    /// Writes the changes in a transaction of their own.
    func writeChanges(_ writer: ChangeWriter) throws { try writer.write(rows) }

    /// Writes everything in an open transaction.
    func write(_ writer: ChangeWriter, _ db: Database) throws {
        for prepare in preparations { try prepare(db) }
        try writer.append(rows)
    }

    /// Notes in memory that everything was written.
    /// - Returns: the stores that were changed.
    func finish() -> [Store] {
        for store in stores {
            store.undo = nil
            store.isStored = true
            store.shared.storedHidden = store.shared.usage.hidden
        }
        for replica in newReplicas { replica.isStored = true }
        return stores
    }

    /// Reverts memory, the last store first.
    func revert() {
        for store in stores.reversed() { store.revert() }
    }

    /// Ends a batch that writes nothing.
    func drop() {
        for store in stores { store.undo = nil }
    }
}
