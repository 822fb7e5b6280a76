// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import Sealing
internal import StoreEngine

/// A device as the world sees it, of the whole form or of the core form.
protocol SimulatedDevice: AnyObject {
    /// The objects that remotes store.
    associatedtype Blob

    /// Makes an unused device.
    init(number: Int, world: World<Self>)

    var number: Int { get }
    /// The origin under which the device writes.
    var origin: Origin? { get }
    /// Whether the device's process is running.
    var isRunning: Bool { get }
    /// Whether the device is gone for good.
    var isGone: Bool { get set }
    /// The remote whose account the device shows, signed in or not; `nil` if there is none.
    var place: Int? { get }
    var isSignedIn: Bool { get }
    /// Whether the account's values have arrived, and nothing is pending.
    var isSettled: Bool { get }
    /// Whether something of the account could not be read, because segments are missing.
    var lacksParts: Bool { get }
    /// How far the device's clock is ahead of the right time, in milliseconds.
    var clock: Int64 { get set }

    func start()
    func stop(_ ending: StopKind)
    /// Lets the process die instead of a write to a remote, after so many other writes; `nil` lets it live.
    func dieAfter(writes: Int?)
    /// Sets or removes a key, and reports an accepted write to the world.
    func write(store: Int, key: Int, number: Int64, removes: Bool)
    /// Sets a key that stays on the device, and publishes a record that breaks the rules.
    func writeLocal(number: Int64)
    func signIn(to place: Place<Blob>)
    func signOut(keepingValues: Bool)
    func syncNow()
    func noteHint()
    func backUp()
    /// Restores the last backup.
    /// - Returns: whether there was one.
    func restore() -> Bool
    /// Saves the machine with its memory.
    func takeSnapshot()
    /// Reverts the machine, with its memory, to the saved state.
    func revert()
    /// Becomes a copy of another device.
    func copyDisk(of other: Self, isFork: Bool)

    /// Whether a store is synced.
    func isSynchronized(_ store: Int) -> Bool
    /// Whether a store's values have arrived, so that the device publishes it.
    func hasArrived(_ store: Int) -> Bool
    /// Carries out a chore. Devices of the core form ignore it.
    func perform(_ chore: Chore, store: Int, duration: UInt64)
    /// Loses the file with the account's key. The process is stopped for that.
    func loseKey()
    /// Moves the account to a new key.
    func moveToKey()
    /// The key under which the device has its account; `nil` if that is unencrypted.
    var key: KeyIdentifier? { get }
    /// Whether the account is between two forms.
    var isMoving: Bool { get }
    /// Ends everything that chores have begun.
    func endChores()

    /// Forgets some tombstones before their time.
    /// - Returns: whether this kind of device can.
    func forgetTombstones(_ chance: inout Chance) -> Bool

    /// The state of a store in the current account.
    func state(of store: Int) -> StoreState
    /// What a store shows: the numbers of the writes, by key.
    func values(of store: Int) -> [Int: Int64]
    /// A broken rule that only this kind of device can notice; `nil` if there is none.
    func check() -> String?
    /// The keys that do not fit into a store.
    func overflow(of store: Int) -> [String]
    /// Ends the device for good.
    func end()

    /// Whether devices start tasks, which the executor runs.
    static var hasTasks: Bool { get }
    /// What a torn write leaves of an object; `nil` if nothing.
    static func tear(_ blob: Blob) -> Blob?
    /// A short description of an object.
    static func summary(of blob: Blob) -> String
    /// How many polls it may take to notice that a remote has lost something.
    static var pollsUntilNoticed: UInt64 { get }
    /// Foreign objects that may be in a remote.
    static var junk: [(String, Blob)] { get }
}

extension SimulatedDevice {
    func perform(_ chore: Chore, store: Int, duration: UInt64) {}
    func loseKey() {}
    func moveToKey() {}
    var key: KeyIdentifier? { nil }
    var isMoving: Bool { false }
    func endChores() {}
    func isSynchronized(_ store: Int) -> Bool { true }
    func hasArrived(_ store: Int) -> Bool { true }
}
