// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Replication

/// An account whose values this device has, or had.
package struct Account: Equatable, Sendable {
    let id: Int64
    /// The random identifier that is in the remote; empty for values from before any sign-in.
    package let identifier: String
    /// The backend's cursor at which the last complete download ended; `nil` if none was complete. Empty if one was,
    /// and the next has to begin from nothing.
    package let cursor: [UInt8]?

    /// How many former identifiers of an account are remembered.
    static let mostFormerNames = 256

    /// When a complete pull last ended, in microseconds since 1970; 0 if never.
    package internal(set) var lastPull: UInt64
    /// When an upload last ended, in microseconds since 1970; 0 if never.
    package internal(set) var lastPush: UInt64

    /// Whether the first download is complete.
    package var isDownloaded: Bool { cursor != nil }
    /// Whether the next download has to begin from nothing, for example to read a store that has come into use.
    package var beginsAnew: Bool { cursor?.isEmpty != false }

    static let none: Int64 = 0
    static let device: Int64 = -1

    init(row: Row) throws {
        id = try row.decode(forColumn: "id")
        identifier = try row.decode(forColumn: "identifier")
        cursor = try row.decode(Data?.self, forColumn: "cursor").map(Array.init)
        lastPull = try row.counter("pulled")
        lastPush = try row.counter("pushed")
    }
}

/// The facts about a database that its table `property` holds.
struct DatabaseProperties {
    let generationBase: UInt64
    let account: Account
    let previous: Account?
    let isAwaitingRemote: Bool
    let lastGarbageCollection: UInt64
    let watchedTime: UInt64
    let endWord: UInt64?

    init(_ db: Database, now: UInt64) throws {
        // A clock beyond the year 75000 is wrong.
        if try db.property("generation") == nil { try db.setProperty("generation", Int64(min(now, 1 << 61))) }
        generationBase = try db.counter("generation")
        guard let account = try db.account(try db.property("account") ?? Account.none) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "the current account has no row")
        }
        self.account = account
        previous = try db.property("backdrop").flatMap { try db.account($0) }
        isAwaitingRemote = try db.property("awaiting-remote") == 1
        lastGarbageCollection = try db.counter("tidied")
        watchedTime = try db.counter("watched")
        endWord = try db.property("end").map(UInt64.init(bitPattern:))
    }
}

extension Database {
    func property<Kind: DatabaseValueConvertible>(_ name: String, as kind: Kind.Type = Int64.self) throws -> Kind? {
        try Kind.fetchOne(cachedStatement(sql: "SELECT value FROM property WHERE name = ?"), arguments: [name])
    }

    /// Returns a property with a number that this device counts; 0 if there is none.
    func counter(_ name: String) throws -> UInt64 {
        guard let count = UInt64(counting: try property(name) ?? 0) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "an impossible \(name)")
        }
        return count
    }

    func setProperty(_ name: String, _ value: (any DatabaseValueConvertible)?) throws {
        try run(
            sql: "INSERT OR REPLACE INTO property (name, value) VALUES (?, ?)", arguments: [name, value])
    }

    /// Returns the former identifiers of an account on this device.
    func formerNames(of account: Int64) throws -> Set<String> {
        let names = try property("former-names-\(account)", as: String.self)
        return Set(names?.split(separator: "\n").map(String.init) ?? [])
    }

    /// Saves the former identifiers of an account. A remote may show others each time, so those beyond the most that are
    /// kept are left out, as long as they aren't among the first.
    func saveFormerNames(_ names: Set<String>, first: Set<String> = [], of account: Int64) throws {
        let kept = (first.sorted() + names.subtracting(first).sorted()).prefix(Account.mostFormerNames)
        try setProperty("former-names-\(account)", kept.isEmpty ? nil : kept.joined(separator: "\n"))
    }

    /// Whether an account was ever opened with its key on this device.
    func isEncrypted(_ account: Int64) throws -> Bool { try property("encrypted-\(account)") == 1 }

    func saveEncrypted(_ isEncrypted: Bool, of account: Int64) throws {
        try setProperty("encrypted-\(account)", isEncrypted ? 1 : nil)
    }

    /// Returns the encrypted account that was found in place of this unencrypted one; `nil` if none was.
    func successor(of account: Int64) throws -> String? { try property("successor-\(account)", as: String.self) }

    func saveSuccessor(_ identifier: String?, of account: Int64) throws {
        try setProperty("successor-\(account)", identifier)
    }

    /// Returns the accounts in whose place an encrypted one was found.
    func accounts(withSuccessor identifier: String) throws -> [String] {
        try String.fetchAll(
            cachedStatement(
                sql: """
                    SELECT account.identifier FROM property
                        JOIN account ON property.name = 'successor-' || account.id WHERE property.value = ?
                    """),
            arguments: [identifier])
    }

    func account(_ id: Int64) throws -> Account? {
        try Row.fetchOne(cachedStatement(sql: "SELECT * FROM account WHERE id = ?"), arguments: [id])
            .map(Account.init(row:))
    }

    func account(named identifier: String) throws -> Account? {
        try Row.fetchOne(cachedStatement(sql: "SELECT * FROM account WHERE identifier = ?"), arguments: [identifier])
            .map(Account.init(row:))
    }
}
