// SPDX-License-Identifier: Apache-2.0

// The devices of an account are entries of a store that no app can have, and are merged like any other: the key is the
// device's identifier, the value a dictionary of what the others are told.
//
// A device writes its entry only together with an upload, and at most once a day: receiving never causes an upload. A
// device that has nothing to upload for a day uploads its entry all the same. A device that was forgotten is listed again
// after its next upload.

internal import PropertyList
public import Replication
internal import StoreEngine

/// The stores of an account that belong to no app.
enum HiddenStore {
    /// The devices. No manifest can declare this identifier, nor any that begins like it.
    static let devices = "@devices"

    static func isHidden(_ identifier: String) -> Bool { HiddenStores.contains(identifier) }
}

/// A device of an account, as all its devices know it.
public struct AccountDevice: Equatable, Sendable {
    /// Random, and the same as long as the device's database lives.
    public let identifier: String
    /// What users see.
    public var name: String
    /// About when it last uploaded something, in microseconds since 1970; 0: never.
    public var lastSeen: UInt64
    /// The user took it off the list, and it has not uploaded since.
    var isForgotten = false
}

/// The devices of one user's account, this one among them.
///
/// Not Sendable: it lives with the database in its owner's isolation.
public final class DeviceList {
    /// This device, as the others are told of it.
    public var own: RemoteDevice
    /// The user chose this device's name here, and the account does not have it yet. Until it does, that name counts.
    public var announcesName = false
    /// Called when this device got another name, and when the account has the one that was chosen here.
    public var onOwnChange: (() -> Void)?

    private let database: UserDatabase
    /// Which device wrote under an origin, as far as any pull has said.
    private var writers: [Origin: RemoteDevice] = [:]
    /// The devices of which the last pull found something.
    private var present: Set<String> = []

    init(_ database: UserDatabase, own: RemoteDevice) { (self.database, self.own) = (database, own) }

    /// The identifier of the device that wrote under an origin, where it is known.
    public func identifier(of origin: Origin) -> String? {
        origin == database.origin ? own.identifier : writers[origin]?.identifier
    }

    /// The device that wrote under all of these; `nil` if there are several, or one that is not known.
    func soleIdentifier(of origins: Set<Origin>) -> String? {
        let devices = Set(origins.map(identifier))
        return devices.count == 1 ? devices.first ?? nil : nil
    }

    /// The origins of devices that were forgotten.
    func forgottenOrigins() throws(EngineError) -> Set<Origin> {
        let forgotten = Set(try entries().filter(\.isForgotten).map(\.identifier))
        return Set(writers.filter { forgotten.contains($0.value.identifier) }.keys)
    }

    // MARK: What a pull finds

    /// Another remote may have others.
    func forgetWriters() { (writers, present) = ([:], []) }

    /// A pull has found publications of these devices.
    func note(_ found: [Origin: RemoteDevice]) {
        writers.merge(found) { $1 }
        present = Set(found.values.map(\.identifier))
    }

    /// The account says something new of its devices: another one may have given this one a name.
    func noteEntries(in store: Store) {
        // Who forgot this device may have known its name of before.
        guard !announcesName, let listed = AccountDevice(own.identifier, in: store), !listed.isForgotten,
            listed.name != own.name
        else { return }
        own = RemoteDevice(identifier: own.identifier, name: listed.name)
        onOwnChange?()
    }

    // MARK: The list

    /// The devices on the list, without this one.
    func others() throws(EngineError) -> [AccountDevice] {
        try entries().filter { !$0.isForgotten && $0.identifier != own.identifier }
    }

    /// Takes a name that the user chose on this device: it counts, whatever the account says.
    func takeName(_ name: String) {
        own = RemoteDevice(identifier: own.identifier, name: name)
        announcesName = true
    }

    /// Gives a device on the list another name, for all devices.
    /// - Returns: whether there is such a device.
    func rename(_ identifier: String, to name: String) throws(EngineError) -> Bool {
        guard var device = try entry(identifier) else { return false }
        device.name = name
        try write(device)
        return true
    }

    /// Takes another device off the list, until it uploads again.
    /// - Returns: whether there is such a device.
    func forget(_ identifier: String) throws(EngineError) -> Bool {
        guard identifier != own.identifier, var device = try entry(identifier) else { return false }
        device.isForgotten = true
        try write(device)
        return true
    }

    /// Before an upload: says of this device that it is there, unless that was said within a day.
    func announceOwn() throws(EngineError) {
        let (devices, now) = (try entries(), database.environment.time())
        try removeForgotten(among: devices)
        let listed = devices.first { $0.identifier == own.identifier && !$0.isForgotten }
        if listed?.name != own.name || SyncCycle.isDayAway(now, from: listed?.lastSeen ?? 0) {
            try write(AccountDevice(identifier: own.identifier, name: own.name, lastSeen: now))
        }
        guard announcesName else { return }
        announcesName = false
        onOwnChange?()
    }

    /// Removes the entries of forgotten devices of which nothing is left at the remote. A device that comes back writes
    /// a new one.
    private func removeForgotten(among devices: [AccountDevice]) throws(EngineError) {
        let gone = devices.filter { $0.isForgotten && !present.contains($0.identifier) }
        if gone.isEmpty { return }
        try database.store(HiddenStore.devices).stage(
            setting: [], removing: gone.map { Key(unchecked: $0.identifier) })
        try database.commit()
    }

    // MARK: Entries

    private func entries() throws(EngineError) -> [AccountDevice] {
        let store = try database.store(HiddenStore.devices)
        // Until this account's devices have arrived, the store shows those of the account before.
        if store.hasPreviousValues { return [] }
        return store.values.map { AccountDevice($0.key.string, $0.value) }
    }

    /// A device that is on the list.
    private func entry(_ identifier: String) throws(EngineError) -> AccountDevice? {
        try entries().first { $0.identifier == identifier && !$0.isForgotten }
    }

    private func write(_ device: AccountDevice) throws(EngineError) {
        let store = try database.store(HiddenStore.devices)
        let entry = (Key(unchecked: device.identifier), device.value)
        do { try store.stage(setting: [entry], removing: []) } catch .quota {
            // More devices than a store has keys: the one that was not seen for longest gives way until it uploads.
            let others = try entries().filter { $0.identifier != device.identifier }
            guard let oldest = others.min(by: { ($0.lastSeen, $0.identifier) < ($1.lastSeen, $1.identifier) })
            else { return }
            do { try store.stage(setting: [entry], removing: [Key(unchecked: oldest.identifier)]) } catch .quota {
                // The rest works without being listed.
            }
        }
        try database.commit()
    }
}

extension AccountDevice {
    fileprivate init?(_ identifier: String, in store: Store) {
        guard let value = store.value(for: Key(unchecked: identifier)) else { return nil }
        self.init(identifier, value)
    }

    /// What an entry says; what it does not say, or says in another way, is as if it were not there.
    fileprivate init(_ identifier: String, _ value: Value) {
        self.init(identifier: identifier, name: identifier, lastSeen: 0)
        guard case .dictionary(let facts) = value else { return }
        if case .string(let name) = facts["name"] { self.name = name.string }
        if case .integer(let time) = facts["last-seen"], time > 0 { lastSeen = UInt64(time) }
        isForgotten = facts["forgotten"] == .boolean(true)
    }

    fileprivate var value: Value {
        var facts: [Text: Value] = [
            "name": .string(Text(name)), "last-seen": .integer(Int64(clamping: lastSeen)),
        ]
        if isForgotten { facts["forgotten"] = .boolean(true) }
        return .dictionary(facts)
    }
}
