// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus

/// The room that all users share: in memory, and on the disk.
@BusActor
final class SharedRoom {
    /// The memory of all stores in use.
    var memory = StoreMemory(within: .shared)
    /// How many bytes of the disk are left to users whose databases are small.
    var diskReserve = 32 << 20
}
