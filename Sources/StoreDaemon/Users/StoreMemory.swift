// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication
internal import SDBus

/// The memory that the stores in use of all users take.
///
/// A Boolean in an array is one byte on the disk, which counts against the limits of stores, and sixteen in memory. The
/// service has one bound for everybody (`MemoryMax=`), so stores beyond a user's part aren't loaded.
@BusActor
final class StoreMemory {
    private let limit: SharedLimit
    private(set) var total = 0

    nonisolated init(_ limit: SharedLimit = SharedLimit(64 << 20, reserve: 32 << 20)) { self.limit = limit }

    /// Counts memory that a user's stores take, or no longer take if negative.
    func count(_ bytes: Int) { total += bytes }

    /// Whether a user's stores may take more memory.
    /// - Parameter own: what they take already.
    func allows(_ bytes: Int, besides own: Int) -> Bool { limit.allows(own + bytes, beside: total - own) }
}

extension Value {
    /// About the memory that the value takes, in bytes.
    var memory: Int {
        switch self {
        case .boolean, .integer, .real, .date: 16
        case .string(let text): 32 + text.utf8Count
        case .data(let bytes): 48 + bytes.count
        case .array(let values): values.reduce(48) { $0 + $1.memory }
        case .dictionary(let values): values.reduce(64) { $0 + 48 + $1.key.utf8Count + $1.value.memory }
        }
    }
}
