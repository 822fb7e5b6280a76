// SPDX-License-Identifier: Apache-2.0

internal import GRDB
public import PropertyList
internal import Replication

/// Why the engine refused or could not do what was asked. Nothing has changed.
public enum EngineError: Error, Equatable {
    /// A key that breaks the rules.
    case key(KeyError)
    /// A value that breaks the rules; the key it was meant for.
    case value(Key, ValueError)
    /// The store would hold too much.
    case quota(QuotaViolation)
    /// The store is not at the generation that the writer expected; the one it is at.
    case conflict(generation: UInt64)
    /// The database is damaged; it has to be set aside.
    case corrupt(String)
    /// The database was written by a newer version of this service.
    case newer
    /// There is no space left where the database is.
    case diskFull
    /// Another failure of the disk or the database.
    case storage(String)

    /// What a failure of SQLite means for the engine.
    init(_ error: any Error) {
        switch error {
        case let error as EngineError:
            self = error
        case let error as DatabaseError:
            switch error.resultCode {
            case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT: self = .corrupt(error.message ?? "damaged")
            case .SQLITE_FULL: self = .diskFull
            default: self = .storage("\(error.resultCode): \(error.message ?? "no further reason")")
            }
        case is RowDecodingError:
            self = .corrupt("a column that holds what it can't hold")
        default:
            self = .storage("\(error)")
        }
    }
}

/// Which limit a write would break.
public struct QuotaViolation: Error, Equatable, Sendable {
    /// The limits that count a whole store or a whole value.
    public enum Limit: Sendable {
        case keys, totalBytes, valueBytes
    }

    /// The limit.
    public let limit: Limit
    /// What the limit allows.
    public let maximum: Int
    /// What is in use.
    public let used: Int
    /// What the write would make it.
    public let needed: Int
    /// The keys that were to be set.
    public let keys: [Key]

    /// A write that would break a limit.
    public init(limit: Limit, maximum: Int, used: Int, needed: Int, keys: [Key]) {
        (self.limit, self.maximum, self.used) = (limit, maximum, used)
        (self.needed, self.keys) = (needed, keys)
    }

    /// What is left: never negative, as a merge may have used more than the limit.
    public var available: Int { max(0, maximum - used) }
}
