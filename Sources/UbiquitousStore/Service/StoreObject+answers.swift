// SPDX-License-Identifier: Apache-2.0

package import PropertyList
internal import SDBus
internal import StoreBus

/// The result of `GetSnapshot`.
package struct Snapshot: Sendable, Equatable {
    /// The generation of this snapshot.
    package var generation: UInt64
    /// Whether ``values`` is the whole store.
    package var isComplete: Bool
    /// Keys with their values.
    package var values: [Text: Value]
    /// Keys that were removed.
    package var removed: [Text]

    /// Makes a snapshot as the service would return it.
    package init(generation: UInt64, isComplete: Bool, values: [Text: Value], removed: [Text] = []) {
        self.generation = generation
        self.isComplete = isComplete
        self.values = values
        self.removed = removed
    }
}

/// The signal `DidChangeExternally`.
package struct ExternalChange: Sendable, Equatable {
    /// The reason, a number of the D-Bus interface.
    package var reason: UInt32
    /// The keys whose visible value changed.
    package var keys: [Text]
    /// The generation after the change.
    package var generation: UInt64
    /// The device that the change came from, if it is known and a single one.
    package var originDevice: String?
    /// With reason 2, the limit's name.
    package var limit: String?

    /// Makes a change as the service would signal it.
    package init(
        reason: UInt32, keys: [Text], generation: UInt64, originDevice: String? = nil, limit: String? = nil
    ) {
        self.reason = reason
        self.keys = keys
        self.generation = generation
        self.originDevice = originDevice
        self.limit = limit
    }

    init(_ message: Message) throws {
        reason = try message.readUInt32()
        keys = try message.readStrings().map { Text($0) }
        generation = try message.readUInt64()
        let info = try message.readDictionary()
        originDevice = info["origin-device"].flatMap { if case .string(let text) = $0 { text.string } else { nil } }
        limit = info["limit"].flatMap { if case .string(let text) = $0 { text.string } else { nil } }
    }
}

/// An earlier value of a key, from `GetHistory`.
package struct HistoryEntry: Sendable, Equatable {
    /// The value.
    package let value: Value
    /// When it was replaced, in microseconds since 1970-01-01T00:00:00Z.
    package let time: UInt64
    /// The device that wrote it; "" if unknown.
    package let originDevice: String
    /// `replaced`, `removed`, `initial-sync`, `account` or `merge`.
    package let why: String

    init?(_ info: [String: Value]) {
        guard let value = info["value"] else { return nil }
        self.value = value
        time = UInt64(clamping: info.integer("when"))
        originDevice = info.string("origin-device")
        why = info.string("why")
    }
}

/// The properties of a store.
package struct StoreDescription: Sendable, Equatable {
    /// Its identifier.
    package let identifier: String
    /// The owner's user id.
    package let uid: UInt32
    /// Its present generation.
    package let generation: UInt64
    /// How many keys it has.
    package let keyCount: Int
    /// The sum of its values' sizes.
    package let bytesUsed: Int
    /// Its limits.
    package let limits: Limits
    /// The number of pending changes.
    package let pendingChanges: Int
    /// Whether the first download of an account is complete.
    package let isInitialSyncDone: Bool
    /// Whether it is synced.
    package let isSynchronized: Bool

    init(_ properties: [String: Value]) {
        isSynchronized = properties["Synchronized"] != .boolean(false)
        identifier = properties.string("Identifier")
        uid = UInt32(clamping: properties.integer("User"))
        generation = UInt64(clamping: properties.integer("Generation"))
        keyCount = Int(properties.integer("KeyCount"))
        bytesUsed = Int(properties.integer("BytesUsed"))
        limits = Limits(properties["Limits"])
        pendingChanges = Int(properties.integer("PendingChanges"))
        isInitialSyncDone = properties.boolean("InitialSyncDone")
    }
}
