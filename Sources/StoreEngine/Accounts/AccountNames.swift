// SPDX-License-Identifier: Apache-2.0

internal import GRDB

/// What this device remembers of the identifiers of accounts: which ones are the same account's, and which are encrypted.
package struct AccountNames {
    let database: UserDatabase

    private var account: Int64 { database.account.id }

    /// Returns the identifiers of the accounts on this device, including the current one, in whose place an encrypted
    /// account with one of these names was found.
    package func accounts(before names: Set<String>) throws(EngineError) -> Set<String> {
        try database.read { db in Set(try names.flatMap { try db.accounts(withSuccessor: $0) }) }
    }

    /// Returns the identifiers of accounts on this device, the current one included, that once had one of these names.
    package func accounts(formerly names: Set<String>) throws(EngineError) -> Set<String> {
        if names.isEmpty { return [] }
        return try database.read { db in
            let found = try Row.fetchAll(db.cachedStatement(sql: "SELECT id, identifier FROM account WHERE id > 0"))
                .filter { try !db.formerNames(of: $0.decode(atIndex: 0)).isDisjoint(with: names) }
            return Set(try found.map { try $0.decode(atIndex: 1) })
        }
    }

    /// Returns the identifiers that the current account had before, as far as this device knows them.
    package func former() throws(EngineError) -> Set<String> {
        try database.read { db in try db.formerNames(of: account) }
    }

    /// Remembers that the current account is encrypted.
    package func noteEncrypted() throws(EngineError) {
        if try database.read({ db in try db.isEncrypted(account) }) { return }
        try database.write { db in try db.saveEncrypted(true, of: account) }
    }

    /// Returns which of these names are of encrypted accounts that this device has, or had.
    package func encrypted(among names: Set<String>) throws(EngineError) -> Set<String> {
        try database.read { db in
            try names.filter { name in try db.account(named: name).map { try db.isEncrypted($0.id) } ?? false }
        }
    }

    /// Remembers which encrypted account was found in place of the current, unencrypted one; `nil` forgets it.
    package func noteSuccessor(_ identifier: String?) throws(EngineError) {
        if try database.read({ db in try db.successor(of: account) }) == identifier { return }
        try database.write { db in try db.saveSuccessor(identifier, of: account) }
    }

    /// Remembers other identifiers of the current account. Once it is under a key that has one of them, what this device
    /// has of it is found by that.
    func note(aliases: Set<String>) throws(EngineError) {
        if aliases.isEmpty { return }
        let known = try database.read { db in try db.formerNames(of: account) }
        if aliases.isSubset(of: known) || known.count >= Account.mostFormerNames { return }
        try database.write { db in try db.saveFormerNames(known.union(aliases), first: known, of: account) }
    }
}
