// SPDX-License-Identifier: Apache-2.0

// An account's devices are the entries of a store that no app can have, and are joined like those of any other. The key
// is the device's identifier, and the value a dictionary of what the other devices learn.
//
// A device writes its entry only together with an upload, and at most once a day, because receiving never causes an
// upload. A device without anything to upload for a day uploads its entry nevertheless. A device that the user has
// removed from the list is listed again after its next upload.

internal import PropertyList
package import Replication
internal import StoreEngine

/// The stores of an account that belong to no app.
enum HiddenStore {
    /// The store of devices. No manifest can declare this identifier, nor any with the same first character.
    static let devices = "@devices"

    static func isHidden(_ identifier: String) -> Bool { HiddenStores.contains(identifier) }
}

/// A device of an account, as all its devices know it.
package struct AccountDevice: Equatable, Sendable {
    /// Random, and constant as long as the device's database exists.
    package let identifier: String
    /// The name that users see.
    package var name: String
    /// About when the device last uploaded something, in microseconds since 1970; 0 if never.
    package var lastSeen: UInt64
    /// Whether the user has removed the device from the list, and it has not uploaded since.
    var isForgotten = false
}

/// The devices of one user's account, including this one.
///
/// Not Sendable: it lives with the database in its owner's isolation.
package final class DeviceList {
    /// This device, as the others see it.
    package var own: RemoteDevice
    /// Whether the user chose this device's name here, and the account has yet to receive it. Until then, it counts.
    package var announcesName = false
    /// Called when this device gets another name, and when the account has the name that was chosen here.
    package var onOwnChange: (() -> Void)?

    private let database: UserDatabase
    /// The devices by the origins under which they wrote, as far as this process's pulls have found them.
    private var writers: [Origin: RemoteDevice] = [:]
    private static let mostWriters = 16 << 10
    /// The identifiers of the devices whose publications the last pull found.
    private var present: Set<String> = []

    init(_ database: UserDatabase, own: RemoteDevice) { (self.database, self.own) = (database, own) }

    /// Returns the identifier of the device that wrote under an origin; `nil` if it is unknown.
    package func identifier(of origin: Origin) -> String? {
        if origin == database.origin { return own.identifier }
        if let writer = writers[origin] { return writer.identifier }
        if (try? database.origins.isOwn(origin)) == true { return own.identifier }
        return try? database.writers.device(under: origin)
    }

    /// Returns the identifier of the device that wrote under all of these; `nil` if it is not one known device.
    func soleIdentifier(of origins: Set<Origin>) -> String? {
        var sole: String?
        for origin in origins {
            guard let device = identifier(of: origin), sole == nil || device == sole else { return nil }
            sole = device
        }
        return sole
    }

    /// Returns the origins of devices that were removed from the list.
    func forgottenOrigins() throws(EngineError) -> Set<Origin> {
        let forgotten = Set(try entries().filter(\.isForgotten).map(\.identifier))
        return Set(writers.filter { forgotten.contains($0.value.identifier) }.keys)
    }

    // MARK: What a pull finds

    /// Forgets what pulls have found, because another remote may have other devices.
    func forgetWriters() { (writers, present) = ([:], []) }

    /// Notes the devices whose publications a pull has found.
    func note(_ found: [Origin: RemoteDevice]) {
        let new = found.mapValues(\.identifier).filter { writers[$0]?.identifier != $1 && $0 != database.origin }
        // Without them, only names of devices are missing from the history.
        if !new.isEmpty { try? database.writers.note(new) }
        writers.merge(found) { $1 }
        // A remote can show others at each poll.
        if writers.count > Self.mostWriters { writers = found }
        present = Set(found.values.map(\.identifier))
    }

    /// Takes over the name that another device may have given this one, when the account's list has changed.
    func noteEntries(in store: Store) {
        // The device that removed this one from the list may have known an earlier name.
        guard !announcesName, let listed = AccountDevice(own.identifier, in: store), !listed.isForgotten,
            listed.name != own.name
        else { return }
        own = RemoteDevice(identifier: own.identifier, name: listed.name)
        onOwnChange?()
    }

    /// Takes over this device's name from the list. A crash may have come between the list's change and the writing of
    /// the name that the service saves.
    package func readOwnName() throws {
        let store = try database.store(HiddenStore.devices)
        // Until this account's devices have arrived, the store shows those of the previous account.
        if !store.hasPreviousValues { noteEntries(in: store) }
    }

    // MARK: The list

    /// Returns the devices on the list, except this one.
    func others() throws(EngineError) -> [AccountDevice] {
        try entries().filter { !$0.isForgotten && $0.identifier != own.identifier }
    }

    /// Takes the name that the user chose on this device. It counts, whatever the account says.
    func takeName(_ name: String) {
        own = RemoteDevice(identifier: own.identifier, name: name)
        announcesName = true
    }

    /// Renames a device on the list, for all devices.
    /// - Returns: whether there is such a device.
    func rename(_ identifier: String, to name: String) throws(EngineError) -> Bool {
        guard var device = try entry(identifier) else { return false }
        device.name = name
        try write(device)
        return true
    }

    /// Removes another device from the list, until it uploads again.
    /// - Returns: whether there is such a device.
    func forget(_ identifier: String) throws(EngineError) -> Bool {
        guard identifier != own.identifier, var device = try entry(identifier) else { return false }
        device.isForgotten = true
        try write(device)
        return true
    }

    /// Writes this device's entry before an upload, unless the present one is right and less than a day old.
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

    /// Removes the entries of devices that were removed from the list and have no publication left in the remote. A
    /// device that comes back writes a new entry.
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
        if store.hasPreviousValues { return [] }
        return store.values.map { AccountDevice($0.key.string, $0.value) }
    }

    /// Returns a device that is on the list.
    private func entry(_ identifier: String) throws(EngineError) -> AccountDevice? {
        try entries().first { $0.identifier == identifier && !$0.isForgotten }
    }

    private func write(_ device: AccountDevice) throws(EngineError) {
        let store = try database.store(HiddenStore.devices)
        let entry = (Key(unchecked: device.identifier), device.value)
        do { try store.stage(setting: [entry], removing: []) } catch .quota {
            // With more devices than a store has keys, the one not seen for longest gives way until it uploads.
            let others = try entries().filter { $0.identifier != device.identifier }
            guard let oldest = others.min(by: { ($0.lastSeen, $0.identifier) < ($1.lastSeen, $1.identifier) })
            else { return }
            do { try store.stage(setting: [entry], removing: [Key(unchecked: oldest.identifier)]) } catch .quota {
                // Sync works without this entry too.
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

    /// Reads an entry. A field that is missing, or of another type, has its default.
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
