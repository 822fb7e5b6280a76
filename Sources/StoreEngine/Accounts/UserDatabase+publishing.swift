// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
public import Replication

extension UserDatabase {
    /// Records where a complete download ended, after its changes were committed.
    ///
    /// After the first one, every store of the account has what the account has.
    /// - Parameters:
    ///   - isComplete: everything that was there was joined.
    ///   - waiting: stores whose values have not arrived all the same.
    /// - Returns: the stores that are loaded and had not been told, with what changed in them: values of the
    ///   account before that were still shown.
    @discardableResult
    public func completeDownload(
        cursor: [UInt8], isComplete: Bool = true, besides waiting: Set<String> = []
    ) throws(EngineError) -> [StoreViewChange] {
        let (id, hadPreviousValues, beganAnew) = (account.id, previous != nil, account.beginsAnew)
        let late = loadedStores.filter { !$0.shared.isDownloaded && $0.isReplicated }.map { ($0, $0.values) }
        let arrived = try storesAwaitingDownload().filter { !waiting.contains($0) }
        let lastPull = isComplete ? environment.time() : account.lastPull
        account = try write { db in
            if hadPreviousValues { try db.raiseGenerations() }
            try db.run(
                sql: "UPDATE account SET cursor = ?, pulled = ? WHERE id = ?",
                arguments: [Data(cursor), Int64(bitPattern: lastPull), id])
            // While a store took no part in the sync, the account may have been published anew without it.
            if beganAnew { try db.run(sql: "UPDATE account SET pushed = 0 WHERE id = ?", arguments: [id]) }
            for store in arrived {
                try db.run(
                    sql: """
                        UPDATE replica SET downloaded = 1
                        WHERE account = ? AND store = (SELECT id FROM store WHERE identifier = ?)
                        """, arguments: [id, store])
            }
            try db.setProperty("backdrop", nil)
            try db.setProperty("awaiting-remote", nil)
            return try db.account(id) ?? account
        }
        previous = nil
        isAwaitingRemote = false
        if hadPreviousValues { for store in loadedStores { try reload(store) } }
        return late.map { store, before in
            if !waiting.contains(store.identifier) { store.shared.isDownloaded = true }
            return StoreViewChange(store: store, since: before)
        }
    }

    /// A complete download has found nothing new.
    public func noteDownload() {
        account.lastPull = environment.time()
    }

    /// What was uploaded is gone from the remote: it is as if nothing ever had been.
    public func forgetPublication() throws(EngineError) {
        let id = account.id
        try write { try $0.run(sql: "UPDATE account SET pushed = 0 WHERE id = ?", arguments: [id]) }
        account.lastPush = 0
    }

    /// The remote of the current account is tidied up now.
    public func noteGarbageCollection() throws(EngineError) {
        let time = environment.time()
        let watched = watchedTime == 0 ? time : min(time, watchedTime + Retention.day)
        try write { db in
            try db.setProperty("tidied", Int64(bitPattern: time))
            try db.setProperty("watched", Int64(bitPattern: watched))
        }
        (lastGarbageCollection, watchedTime) = (time, watched)
    }

    /// Those that take part in the sync and were not forgotten.
    static let replicatedStores = """
        (SELECT id FROM store WHERE synchronized AND NOT forgotten AND identifier NOT GLOB '!*')
        """

    /// The stores of the account whose first download is still to be completed.
    public func storesAwaitingDownload() throws(EngineError) -> [String] {
        try read { db in
            try String.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT identifier FROM replica JOIN store ON store.id = replica.store
                        WHERE account = ? AND NOT downloaded AND store.id IN \(Self.replicatedStores)
                        ORDER BY identifier
                        """), arguments: [account.id])
        }
    }

    /// The stores that this device publishes: those of the current account whose values have arrived.
    public func accountStores() throws(EngineError) -> [AccountStore] {
        try read { db in
            try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT identifier, published,
                            max(replica.sequence, \(ChangeID.lastSequence(of: "replica.id"))) AS last
                        FROM replica JOIN store ON store.id = replica.store
                        WHERE account = ? AND downloaded AND store.id IN \(Self.replicatedStores) ORDER BY identifier
                        """), arguments: [account.id]
            ).map { row in
                AccountStore(
                    identifier: row["identifier"], sequence: UInt64(bitPattern: row["last"]),
                    published: UInt64(bitPattern: row["published"]))
            }
        }
    }

    /// The first store of the account with entries that break the rules for keys and values, and how many these are.
    public func hiddenEntries() throws(EngineError) -> (store: String, count: Int)? {
        try read { db in
            try Row.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT identifier, hidden FROM replica JOIN store ON store.id = replica.store
                        WHERE account = ? AND hidden > 0 AND store.id IN \(Self.replicatedStores)
                        ORDER BY identifier LIMIT 1
                        """), arguments: [account.id]
            ).map { (try $0.decode(atIndex: 0), try $0.decode(atIndex: 1)) }
        }
    }

    /// How many keys have a change that the remote does not have, in all apps' stores that take part in the sync.
    public func pendingChanges() throws(EngineError) -> Int {
        try pendingChanges(HiddenStores.isAppStore)
    }

    /// Whether there is a change that the remote does not have and may have.
    public func hasUploads() throws(EngineError) -> Bool {
        try pendingChanges("downloaded") > 0
    }

    private func pendingChanges(_ condition: String) throws(EngineError) -> Int {
        try read { db in
            try Int.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT count(*) FROM (
                            SELECT max(change.sequence), cause FROM replica JOIN store ON store.id = replica.store
                                JOIN change ON \(ChangeID.isOf("replica.id"))
                            WHERE account = ? AND change.sequence > published AND synchronized AND \(condition)
                            GROUP BY replica.id, key)
                        WHERE \(Cause.isOwn)
                        """), arguments: [account.id]) ?? 0
        }
    }

    /// Marks what the remote has acknowledged: of each store the sequence up to which it has it.
    /// - Parameter origin: under which it was uploaded; if the device goes on under another one meanwhile,
    ///   sequences may have begun anew, and nothing is marked.
    public func markPublished(_ sequences: [String: UInt64], under origin: Origin) throws(EngineError) {
        guard origin == self.origin else { return }
        // By a clock that stands at the epoch, too, it was published.
        let (account, lastPush) = (account.id, max(1, environment.time()))
        let lastSequence = "max(sequence, \(ChangeID.lastSequence(of: "replica.id")))"
        try write { db in
            for (identifier, sequence) in sequences {
                try db.run(
                    sql: """
                        UPDATE replica SET published = max(published, min(?, \(lastSequence)))
                        WHERE account = ? AND store = (SELECT id FROM store WHERE identifier = ?)
                        """,
                    arguments: [Int64(bitPattern: sequence), account, identifier])
            }
            try db.run(
                sql: "UPDATE account SET pulled = ?, pushed = ? WHERE id = ?",
                arguments: [Int64(bitPattern: self.account.lastPull), Int64(bitPattern: lastPush), account])
        }
        self.account.lastPush = lastPush
        for store in loadedStores where store.shared.account == account {
            if let sequence = sequences[store.identifier] {
                store.shared.published = max(store.shared.published, min(sequence, store.shared.sequence))
            }
        }
    }
}
