// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import Sealing
internal import StoreEngine

/// A device as the world sees it: one that runs the engine as it is, or one that has its core only.
protocol SimulatedDevice: AnyObject {
    /// What remotes store.
    associatedtype Blob

    /// A device that nobody has used yet.
    init(number: Int, world: World<Self>)

    var number: Int { get }
    /// Under which it writes.
    var origin: Origin? { get }
    /// Its process runs.
    var isRunning: Bool { get }
    /// It is gone for good.
    var isGone: Bool { get set }
    /// The remote whose account's values it shows, signed in or not.
    var place: Int? { get }
    var isSignedIn: Bool { get }
    /// The account's values have arrived, and the remote has everything.
    var isSettled: Bool { get }
    /// Milliseconds that its clock is beside the right time.
    var clock: Int64 { get set }

    func start()
    func stop(_ ending: Ending)
    /// Its process dies when it is about to write to a remote, after so many writes; `nil`: it does not.
    func dieAfter(writes: Int?)
    /// Sets a key, or removes it. Tells the world of it, if it was accepted.
    func write(store: Int, key: Int, number: Int64, removes: Bool)
    /// Sets a key that stays on the device; lets the remote have a record that breaks the rules.
    func writeLocal(number: Int64)
    func signIn(to place: Place<Blob>)
    func signOut(keepingValues: Bool)
    func syncNow()
    func noteHint()
    func backUp()
    /// Becomes what it was when it was backed up.
    /// - Returns: whether there was a backup.
    func restore() -> Bool
    /// Saves the machine with its memory.
    func takeSnapshot()
    /// Becomes, with its memory, what it was when it was saved.
    func revert()
    /// Becomes what another one is now.
    func copyDisk(of other: Self, isFork: Bool)

    /// Whether a store takes part in the sync.
    func isSynchronized(_ store: Int) -> Bool
    /// Does what only some kinds of device can.
    func perform(_ chore: Chore, store: Int, duration: UInt64)
    /// Loses the file with the key of its account, while its process is not running.
    func loseKey()
    /// Moves its account to a new key.
    func moveToKey()
    /// The key under which it has its account.
    var key: KeyIdentifier? { get }
    /// Its account is between two forms.
    var isMoving: Bool { get }
    /// Everything that somebody has begun with a chore is over.
    func endChores()

    /// Forgets some tombstones before their time.
    /// - Returns: whether it can.
    func forgetTombstones(_ chance: inout Chance) -> Bool

    /// What a store holds in the current account.
    func state(of store: Int) -> StoreState
    /// What a store shows: keys and the numbers of the writes.
    func values(of store: Int) -> [Int: Int64]
    /// Something is wrong that this kind of device can tell by itself.
    func check() -> String?
    /// The keys that do not fit.
    func overflow(of store: Int) -> [String]
    /// Lets everything go.
    func end()

    /// It starts tasks, which the executor runs.
    static var hasTasks: Bool { get }
    /// A part of what was to be stored; `nil` where it would not even be there.
    static func tear(_ blob: Blob) -> Blob?
    /// An object in a few words.
    static func summary(of blob: Blob) -> String
    /// How many looks it may take until it is noticed that a remote has lost something.
    static var looksUntilNoticed: UInt64 { get }
    /// What somebody may leave in a remote.
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
}
