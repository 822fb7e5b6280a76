// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication
internal import SDBus

/// The memory that the stores in use of all users take.
///
/// A Boolean in an array is one byte on the disk, which counts against the limits of stores, and sixteen in memory. The
/// service has one bound for everybody (`MemoryMax=`), so stores beyond a user's share aren't loaded.
@BusActor
final class StoreMemory {
    private let limit: Int
    private let reserve: Int
    private(set) var total = 0

    /// Makes a count of nothing.
    /// - Parameters:
    ///   - limit: the most that loaded stores may take, in bytes. Each user's may take half of what others leave.
    ///   - reserve: what small stores, and values that are written, may take beyond that.
    nonisolated init(limit: Int = 64 << 20, reserve: Int = 32 << 20) { (self.limit, self.reserve) = (limit, reserve) }

    /// Counts memory that a user's stores take, or no longer take if negative.
    func count(_ bytes: Int) { total += bytes }

    /// Whether a user may load a store that takes this much.
    /// - Parameter own: what the user's stores take already.
    func allowsLoading(_ bytes: Int, besides own: Int) -> Bool {
        bytes <= 0 || SharedLimit(limit, reserve: reserve).allows(own + bytes, beside: total - own)
    }

    /// Whether a user's stores may grow by this much. What others load doesn't change that.
    func allowsWriting(_ bytes: Int, besides own: Int) -> Bool {
        bytes <= 0 || own + bytes <= limit / 2 && total + bytes <= limit + reserve
    }
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
