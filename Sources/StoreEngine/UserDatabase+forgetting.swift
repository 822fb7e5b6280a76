// SPDX-License-Identifier: Apache-2.0

internal import GRDB
public import PropertyList

extension UserDatabase {
    /// Forgets a store on this device: its values, its history, and what it has taken in of any account.
    ///
    /// The store is empty afterwards; its generation goes on. It is passed over when an account is downloaded,
    /// until ``remember(store:)``. Everything else of this device goes on under a new origin, since the account
    /// may hold writes that the store does not know of any more.
    /// - Returns: the keys that were visible; `nil` if the store held nothing.
    public func forget(store identifier: String) throws(EngineError) -> [Key]? {
        guard try storeIdentifiers().contains(identifier) else { return nil }
        let store = try store(identifier)
        let before = store.values
        let origin = drawOrigin()
        try write { db in
            try db.saveOrigin(origin)
            try db.deleteReplicas("store = ?", [store.id])
            try db.saveGeneration(store.generation + 1, knownFrom: store.generation + 1, of: store.id)
            try db.execute(sql: "UPDATE store SET forgotten = 1 WHERE id = ?", arguments: [store.id])
        }
        adopt(origin)
        try reload(store)
        return before.keys.sorted()
    }

    /// Takes a store that was forgotten into use again: every account is downloaded anew, for what it has of it.
    public func remember(store: Store) throws(EngineError) {
        account = try write { db in
            try db.execute(sql: "UPDATE store SET forgotten = 0 WHERE id = ?", arguments: [store.id])
            try db.execute(sql: "UPDATE account SET cursor = NULL")
            return try db.account(account.id) ?? account
        }
        downloadEpoch += 1
        try reload(store)
    }

    /// Goes on under a new origin, since somebody else writes under the present one as well.
    ///
    /// What was written under the present one takes fresh dots: the other's writes may have the same ones, and
    /// whoever has seen those would take these for gone.
    public func leaveOrigin() throws(EngineError) {
        let (left, next) = (origin, drawOrigin())
        try write { db in try db.saveOrigin(next) }
        adopt(next)
        for identifier in try storeIdentifiers() { try store(identifier).stageFreshDots(for: left) }
        try commit()
    }
}
