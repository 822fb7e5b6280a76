// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus
internal import StoreEngine

/// The room that all users share: in memory, and on the disk.
@BusActor
final class SharedRoom {
    /// The memory of all stores in use.
    var memory = StoreMemory(within: .shared)
    /// How many bytes of the disk are left to users whose databases are small.
    var diskReserve = 32 << 20

    /// Has a database in a directory ask here before a long transaction.
    func follow(_ database: UserDatabase, in directory: UserDirectory) {
        database.roomOnDisk = { [unowned self] in forTransaction(in: directory) }
    }

    /// Returns how many bytes of the disk a long transaction may take. That of a small database may take of the reserve.
    private func forTransaction(in directory: UserDirectory) -> Int {
        guard let present = directory.freeBytes else { return .max }
        return max(present - diskReserve, min(2 * UserRoom.smallDatabase, present))
    }
}
