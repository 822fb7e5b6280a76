// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import PropertyList
internal import Replication

/// Why the engine refused or failed to do what was asked. Nothing has changed.
package enum EngineError: Error, Equatable {
    /// A key that breaks the rules.
    case key(KeyError)
    /// A value that breaks the rules, and its key.
    case value(Key, ValueError)
    /// The store would exceed a limit.
    case quota(QuotaViolation)
    /// The store is at this generation, not at the one that the writer expected.
    case conflict(generation: UInt64)
    /// The database is damaged and has to be set aside.
    case corrupt(String)
    /// The database was written by a newer version of this service.
    case newer
    /// There is no space left where the database is.
    case diskFull
    /// The disk has too little room for a transaction that writes many values again: so many bytes are missing.
    case noRoom(missing: Int)
    /// Another failure of the disk or the database.
    case storage(String)

    /// The reason of damage that SQLite doesn't know.
    package static let wrongColumn = "a column that holds what it can't hold"

    /// Translates an error of SQLite.
    init(_ error: any Error) {
        switch error {
        case let error as EngineError:
            self = error
        case let error as DatabaseError:
            switch error.resultCode {
            case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT: self = .corrupt(error.message ?? "damaged")
            // No row that is written here is longer than `DatabaseFile.longestRow`.
            case .SQLITE_TOOBIG: self = .corrupt("a row that is too long")
            case .SQLITE_FULL: self = .diskFull
            // SQLite can't extend the file that its connections share.
            case .SQLITE_IOERR where error.extendedResultCode == .SQLITE_IOERR_SHMSIZE: self = .diskFull
            default: self = .storage("\(error.resultCode): \(error.message ?? "no further reason")")
            }
        case is RowDecodingError:
            self = .corrupt(Self.wrongColumn)
        default:
            self = .storage("\(error)")
        }
    }
}

/// A limit that a write would exceed, and by how much.
package struct QuotaViolation: Error, Equatable, Sendable {
    /// The limits that count a whole store or a whole value.
    package enum Limit: Sendable {
        case keys, totalBytes, valueBytes
    }

    /// The limit.
    package let limit: Limit
    /// The greatest amount that the limit allows.
    package let maximum: Int
    /// The amount in use.
    package let used: Int
    /// The amount that would be in use after the write.
    package let needed: Int
    /// The keys that were to be set.
    package let keys: [Key]

    /// Makes a violation from its parts.
    package init(limit: Limit, maximum: Int, used: Int, needed: Int, keys: [Key]) {
        (self.limit, self.maximum, self.used) = (limit, maximum, used)
        (self.needed, self.keys) = (needed, keys)
    }

    /// The amount that is left; 0 if a join has used more than the limit.
    package var available: Int { max(0, maximum - used) }
}
