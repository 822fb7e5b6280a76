// SPDX-License-Identifier: Apache-2.0

// The devices of an account are entries of a store of the account that no app can have. They are merged like any
// other: the key is the device's identifier, the value a dictionary of what the others are told.
//
// A device writes its entry only together with an upload, and at most once a day: to receive something never causes
// an upload. One that has nothing to upload for a day uploads all the same, with its entry: see `isPublicationDue`.
// One that was forgotten says so of itself with its next upload.

internal import PropertyList
public import Replication
public import StoreEngine

/// Stores of an account that are no app's.
enum HiddenStore {
    /// The devices. No manifest can declare this identifier, nor any that begins like it.
    static let devices = "@devices"

    static func isHidden(_ identifier: String) -> Bool { HiddenStores.contains(identifier) }
}

/// A device of an account, as all its devices know it.
public struct AccountDevice: Equatable, Sendable {
    /// Random, and the same as long as the device's database lives.
    public let identifier: String
    /// For people.
    public var name: String
    /// About when it last uploaded something, in microseconds since 1970; 0: never.
    public var lastSeen: UInt64
    /// Somebody took it off the list, and it has not been back since.
    var isForgotten = false
}

extension AccountSync {
    /// The devices of the account, this one included, in no order.
    public func devices() throws(EngineError) -> [AccountDevice] {
        var devices = try knownDevices().filter { !$0.isForgotten && $0.identifier != device.identifier }
        devices.append(AccountDevice(identifier: device.identifier, name: device.name, lastSeen: lastPush))
        return devices
    }

    /// Gives a device of the account another name, for all of them.
    /// - Returns: whether there is such a device.
    public func rename(device identifier: String, to name: String) throws(EngineError) -> Bool {
        if identifier == device.identifier {
            takeName(name)
            onDeviceChange?()
        }
        guard var known = try knownDevice(identifier) else { return identifier == device.identifier }
        known.name = name
        try write(known)
        noteLocalChange()
        return true
    }

    /// Takes another device off the list, until it uploads again.
    /// - Returns: whether there is such a device.
    public func forget(device identifier: String) throws(EngineError) -> Bool {
        guard identifier != device.identifier, var known = try knownDevice(identifier) else { return false }
        known.isForgotten = true
        try write(known)
        cycle.collectsGarbage = true
        noteLocalChange()
        return true
    }

    /// The identifier of the device that wrote under an origin, where it is known.
    public func deviceIdentifier(of origin: Origin) -> String? {
        if origin == database.origin { return device.identifier }
        return names[origin]?.identifier
    }

    func soleDevice(_ origins: Set<Origin>) -> String? {
        let devices = Set(origins.map(deviceIdentifier))
        return devices.count == 1 ? devices.first ?? nil : nil
    }

    /// The origins of devices that were forgotten.
    func forgottenOrigins() throws(EngineError) -> Set<Origin> {
        let forgotten = Set(try knownDevices().filter(\.isForgotten).map(\.identifier))
        return Set(names.filter { forgotten.contains($0.value.identifier) }.keys)
    }

    /// Takes a name that the person has chosen on this device: it counts, whatever the account says.
    func takeName(_ name: String) {
        device = RemoteDevice(identifier: device.identifier, name: name)
        announcesName = true
    }

    /// The account says something new of its devices: another one may have given this one a name.
    func noteDevices(in store: Store) {
        guard !announcesName, let own = AccountDevice(device.identifier, in: store), own.name != device.name else {
            return
        }
        device = RemoteDevice(identifier: device.identifier, name: own.name)
        onDeviceChange?()
    }

    /// Before an upload: says of this device that it is there, unless that was said within a day.
    func announceDevice() throws(EngineError) {
        let devices = try knownDevices()
        try removeForgotten(among: devices)
        let known = devices.first { $0.identifier == device.identifier && !$0.isForgotten }
        if known?.name != device.name || SyncCycle.isDayAway(database.environment.time(), from: known?.lastSeen ?? 0) {
            try write(
                AccountDevice(identifier: device.identifier, name: device.name, lastSeen: database.environment.time()))
        }
        guard announcesName else { return }
        announcesName = false
        onDeviceChange?()
    }

    /// Removes the entries of devices that were forgotten and of which nothing is left at the remote: who comes back
    /// says so with a new one.
    private func removeForgotten(among devices: [AccountDevice]) throws(EngineError) {
        let gone = devices.filter { $0.isForgotten && !presentDevices.contains($0.identifier) }
        if gone.isEmpty { return }
        try database.store(HiddenStore.devices).stage(
            setting: [], removing: gone.map { Key(unchecked: $0.identifier) })
        try database.commit()
    }

    // MARK: Entries

    private func knownDevices() throws(EngineError) -> [AccountDevice] {
        let store = try database.store(HiddenStore.devices)
        // Until this account's devices have arrived, the store shows those of the account before.
        guard isSignedIn, !store.hasPreviousValues else { return [] }
        return store.values.map { AccountDevice($0.key.string, $0.value) }
    }

    /// A device that is on the list.
    private func knownDevice(_ identifier: String) throws(EngineError) -> AccountDevice? {
        try knownDevices().first { $0.identifier == identifier && !$0.isForgotten }
    }

    private func write(_ device: AccountDevice) throws(EngineError) {
        let store = try database.store(HiddenStore.devices)
        let entry = (Key(unchecked: device.identifier), device.value)
        do { try store.stage(setting: [entry], removing: []) } catch .quota {
            // More devices than a store has keys: the one that was not seen for longest gives way until it uploads.
            let others = try knownDevices().filter { $0.identifier != device.identifier }
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
