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
    private let limit: SharedLimit
    private let service: ServiceMemory
    private(set) var total = 0

    /// Makes a count of nothing.
    /// - Parameters:
    ///   - limit: the most that stores in use may take, in bytes. Each user's may take half of what others leave.
    ///   - reserve: what the stores of users with at most 1 MiB may take beyond that.
    ///   - service: what stores share with everything else.
    nonisolated init(
        limit: Int = 64 << 20, reserve: Int = 32 << 20, within service: ServiceMemory = ServiceMemory()
    ) {
        self.limit = SharedLimit(limit, reserve: reserve)
        self.service = service
    }

    /// Counts memory that a user's stores take, or no longer take if negative.
    func count(_ bytes: Int) {
        total += bytes
        service.count(bytes)
    }

    /// Whether a user's stores may take this much more, because they are loaded or written to.
    /// - Parameter own: what the user's stores take already.
    func allows(_ bytes: Int, besides own: Int) -> Bool {
        bytes <= 0 || limit.allows(own + bytes, beside: total - own) && service.allows(bytes, besides: own)
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
