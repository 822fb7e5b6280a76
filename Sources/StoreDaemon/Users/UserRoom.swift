// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication
internal import SDBus
internal import StoreBus
internal import StoreEngine

/// The room for a user's data in the database and on the disk, and how many stores the user may begin.
///
/// To measure either takes long, so what may be written before the next measurement is counted down. Memory has bounds
/// of its own: see ``User/makeRoom(for:)``.
@BusActor
final class UserRoom {
    private unowned let user: User
    private let shared: SharedRoom
    private let service: ServiceContext
    /// The stores that may be begun and the bytes that may be written before both are counted again, which takes long.
    private var allowance = (stores: 0, bytes: 0)
    /// How much may arrive from other devices before the disk is looked at again, in bytes.
    private var joinAllowance = 0
    private var historyPace = Pace()

    private var database: UserDatabase { user.database }

    init(of user: User, sharing shared: SharedRoom, in service: ServiceContext) {
        self.user = user
        self.shared = shared
        self.service = service
    }

    /// How many bytes may be written before the disk is looked at again.
    private static let largestAllowance = 4 << 20

    /// The size of a database, in bytes, up to which a user may also write to a disk on which little is left.
    static let smallDatabase = 1 << 20

    /// How many bytes of the reserve a user's log may take.
    private static let largestLog = 1 << 20

    /// About the most bytes by which a write grows the database besides its values: whole pages.
    private static let pages = 8 << 10

    /// About the bytes of a row besides its key and value.
    private static let row = 100

    // MARK: Writes

    /// Has the stores and the bytes counted again with the next write, because the bounds or the database have changed.
    func measureAgain() { allowance = (stores: 0, bytes: 0) }

    /// Whether there is room for values without looking at the disk or at the stores. If so, it counts them.
    /// - Parameters:
    ///   - growth: about the memory that they take, in bytes.
    ///   - bytes: about how many bytes they take in the database.
    func admit(memory growth: Int, bytes: Int, in store: Store) -> Bool {
        guard store.isStored || store.isLayer, bytes + Self.pages <= allowance.bytes,
            shared.memory.allows(growth, besides: user.memory)
        else { return false }
        allowance.bytes -= bytes + Self.pages
        return true
    }

    /// Throws if there is no room for the values, or the write would begin a store beyond the bound.
    /// - Parameters:
    ///   - bytes: about how many bytes they take in the database.
    ///   - replaced: about how many bytes the values take that they replace.
    /// - Throws: `LimitsExceeded` if it would be a store too many, `QuotaExceeded` if the database would be too large,
    ///   and `EngineError.diskFull`.
    func check(for store: Store, bytes: Int, replacing replaced: Int) throws {
        if !store.isStored && !store.isLayer { try checkStores(besides: store.identifier) }
        allowance.bytes -= bytes + Self.pages
        if allowance.bytes < 0 { try renewAllowance(for: bytes, replacing: replaced) }
    }

    private func checkStores(besides identifier: String) throws {
        allowance.stores -= 1
        guard allowance.stores < 0 else { return }
        service.writes.commit()
        let maximum = service.configuration.bounds.stores
        let others = try user.storeIdentifiers().count { $0 != identifier }
        guard others < maximum else {
            throw BusError.limitsExceeded("A user may have \(maximum) stores; see ubiquitousctl stores.")
        }
        // The user's other devices also begin stores.
        allowance.stores = (maximum - others - 1) / 2
    }

    /// Measures the database, and allows a part of the remaining room to be written before the next measurement.
    private func renewAllowance(for bytes: Int, replacing replaced: Int) throws {
        service.writes.commit()
        let maximum = service.configuration.bounds.databaseBytes
        // What is replaced becomes history, which gives way to the next write.
        let growth = max(0, bytes - replaced)
        var used = try user.recovery.retrying { try database.space.size() }
        // The values of an account that was cleared may still be there.
        if used + growth > maximum { used = try database.leftovers.shrink(toSize: maximum - growth, atMost: 64) }
        if used + growth > maximum { used = try shrinkHistory(for: growth, maximum, used) }
        guard used + growth <= maximum || growth == 0 else {
            throw SharedBound(
                error: .store(
                    .quotaExceeded,
                    """
                    The values of all of the user's stores and defaults domains take \(used) bytes of \(maximum) (limit \
                    database-bytes), and with the write they would take \(used + growth). Remove values, stores or domains \
                    that are not needed.
                    """),
                toApps: .store(
                    .quotaExceeded,
                    "There is no room left for the user's data (limit database-bytes). Remove values that are not needed."
                ))
        }
        var room = try onDisk(for: used)
        if bytes > room {
            // What history leaves free is the user's, however full the disk is.
            used = try shrinkHistory(for: bytes, used, used)
            room = try onDisk(for: used)
        }
        guard bytes <= room else { throw EngineError.diskFull }
        // Other users write to what is left as well.
        allowance.bytes = min(max(0, min(maximum - used, room)) / 16, Self.largestAllowance)
    }

    /// Removes history to make room for a write, and an eighth more, so that not every write has to.
    /// - Returns: the size of the database afterwards, in bytes.
    private func shrinkHistory(for bytes: Int, _ maximum: Int, _ used: Int) throws -> Int {
        // A caller at the limit must not cause this again and again for a few bytes.
        guard historyPace.isDue || database.space.mayFree(maximum / 16) else { return used }
        return try historyPace.run {
            try user.recovery.retrying { try database.history.shrink(toSize: max(0, maximum - maximum / 8 - bytes)) }
        }
    }

    // MARK: Other devices

    /// Throws `EngineError.diskFull` if the disk has no room for what other devices have written to a store. What
    /// doesn't grow it always has.
    func checkDisk(for plan: JoinPlan, in store: Store) throws {
        let bytes = plan.taken.reduce(0) { sum, taken in
            guard let value = taken.value.value else { return sum }
            let present = store.value(for: taken.key).map(\.marshalledSize) ?? -Self.row
            return sum + taken.key.text.utf8Count + max(0, value.count - present)
        }
        joinAllowance -= bytes
        guard bytes > 0, joinAllowance < 0 else { return }
        let growth = try onDisk()
        guard bytes <= growth else { throw EngineError.diskFull }
        joinAllowance = min(growth / 16, Self.largestAllowance)
    }

    // MARK: The disk

    /// Returns the bytes that the disk has for the user's data.
    func onDisk() throws -> Int { try onDisk(for: user.recovery.retrying { try database.space.size() }) }

    /// Returns the bytes that the disk has for the user's data. What is left of a full disk is for users who have little.
    /// - Parameter used: the bytes of the database.
    private func onDisk(for used: Int) throws -> Int {
        let free = try user.recovery.retrying { try database.space.freeBytes() }
        guard let present = user.directory.freeBytes else { return .max }
        let room = max(present - shared.diskReserve + free, free, min(Self.smallDatabase - used, present + free))
        if present >= shared.diskReserve { return room }
        // What is written is in the log first, whose room is not to be kept from others.
        database.emptyLog(beyond: Self.largestLog / 4)
        return min(room, Self.largestLog - database.logBytes)
    }
}
