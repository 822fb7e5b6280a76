// SPDX-License-Identifier: Apache-2.0

/// The ids of the rows of `change`. Those of one replica lie together, in the order of their sequences.
///
/// A replica has room for a trillion changes: more than a disk outlives.
enum ChangeID {
    /// Returns the id of a replica's change, or a bound of a range of ids.
    static func of(_ replica: Int64, _ sequence: UInt64) -> Int64 {
        replica << bits | Int64(truncatingIfNeeded: min(sequence, lastSequence))
    }

    /// SQL: the id of a replica's change.
    static func of(_ replica: String, _ sequence: String) -> String { "(\(replica) << \(bits) | (\(sequence)))" }

    /// The number of bits of a sequence, as in the schema.
    private static let bits = 40
    /// The greatest id of a replica that fits.
    static let lastReplica: Int64 = 1 << (63 - bits) - 1
    /// The greatest sequence that fits.
    static let lastSequence: UInt64 = 1 << bits - 1

    /// SQL: whether a row of `change`, by its name in the query, belongs to a replica.
    static func isOf(_ replica: String, _ change: String = "change") -> String {
        "(\(change).id BETWEEN \(of(replica, "0")) AND \(of(replica, "\(lastSequence)")))"
    }

    /// SQL: the sequence of a replica's last change; 0 if it has none.
    static func lastSequence(of replica: String) -> String {
        "coalesce((SELECT max(last.id) & \(lastSequence) FROM change AS last WHERE \(isOf(replica, "last"))), 0)"
    }
}
