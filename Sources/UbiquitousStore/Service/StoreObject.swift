// SPDX-License-Identifier: Apache-2.0

package import PropertyList
package import SDBus
internal import StoreBus

/// An app's store, through the service.
@BusActor
package struct StoreObject: ServiceObject {
    package static let interface = BusNames.storeInterface
    /// The connection to the service.
    package let connection: ServiceConnection
    /// The object's path, with the user's number. Signals come from this path.
    package let path: String

    // MARK: Reading

    /// `GetValue`; `nil` for `NoSuchKey`.
    package func value(_ key: String) async throws -> Value? {
        do {
            return try await call("GetValue") {
                try $0.append(key)
            } decode: {
                try $0.readValue()
            }
        } catch let error as UbiquitousStoreError where error.code == .noSuchKey {
            return nil
        }
    }

    /// `GetValues`; keys that the store doesn't have are left out.
    package func values(_ keys: [String]) async throws -> [Text: Value] {
        try await call("GetValues") {
            try $0.append(strings: keys)
        } decode: {
            try $0.readTexts()
        }
    }

    /// `GetSnapshot`: what changed since a generation, or everything.
    ///
    /// - Parameter timeout: libsystemd's 25 s if `nil`.
    package func snapshot(since generation: UInt64 = 0, timeout: Duration? = nil) async throws -> Snapshot {
        try await call("GetSnapshot", timeout: timeout) {
            try $0.append(generation)
            try $0.append(0 as UInt64)
        } decode: {
            Snapshot(
                generation: try $0.readUInt64(), isComplete: try $0.readBool(), values: try $0.readTexts(),
                removed: try $0.readStrings().map { Text($0) })
        }
    }

    /// `GetHistory`: earlier values of a key, the newest first.
    package func history(_ key: String) async throws -> [HistoryEntry] {
        try await call("GetHistory") {
            try $0.append(key)
            try $0.append(0 as UInt64)
        } decode: { answer in
            try answer.readDictionaries().compactMap(HistoryEntry.init)
        }
    }

    /// Reads the properties.
    package func properties() async throws -> StoreDescription {
        StoreDescription(try await allProperties())
    }

    // MARK: Writing

    /// `SetValue`: sets a key's value.
    ///
    /// - Returns: the generation after it.
    @discardableResult
    package func set(_ key: String, _ value: Value) async throws -> UInt64 {
        try await call("SetValue") {
            try $0.append(key)
            try $0.append(variant: value)
        } decode: {
            try $0.readUInt64()
        }
    }

    /// `RemoveValue`: removes a key.
    ///
    /// - Returns: the generation after it.
    @discardableResult
    package func remove(_ key: String) async throws -> UInt64 {
        try await call("RemoveValue") {
            try $0.append(key)
        } decode: {
            try $0.readUInt64()
        }
    }

    /// `Apply`: several writes at once, atomically.
    ///
    /// - Parameters:
    ///   - changes: keys with their new values; `nil` removes.
    ///   - generation: the generation the store must have; otherwise the call fails with `Conflict`.
    ///   - late: for late changes. What changed after their generation stays as it is, unless another device did it before
    ///     their time, in microseconds since 1970. Excludes the other option.
    ///   - timeout: libsystemd's 25 s if `nil`.
    /// - Returns: the generation after it.
    @discardableResult
    package func apply(
        _ changes: [Text: Value?], ifGeneration generation: UInt64? = nil,
        late: (generation: UInt64, time: UInt64)? = nil, timeout: Duration? = nil
    ) async throws -> UInt64 {
        try await call("Apply", timeout: timeout) { message in
            try message.appendDictionary {
                for case (let key, let value?) in changes { try message.append(entry: key.string, value) }
            }
            try message.append(strings: changes.lazy.filter { $0.value == nil }.map(\.key.string))
            try message.appendDictionary {
                if let generation { try message.append(option: "if-generation", generation) }
                if let late {
                    try message.append(option: "unless-changed-since", late.generation)
                    try message.append(option: "set-at", late.time)
                }
            }
        } decode: {
            try $0.readUInt64()
        }
    }

    /// `Synchronize`: returns when everything written before is on disk.
    ///
    /// - Parameters:
    ///   - remote: also wait until the upload is done and the remote's changes have arrived.
    ///   - timeout: libsystemd's 25 s if `nil`.
    /// - Returns: whether nothing is pending, or the upload is due.
    @discardableResult
    package func synchronize(waitingForRemote remote: Bool = false, timeout: Duration? = nil) async throws -> Bool {
        try await call("Synchronize", timeout: timeout) {
            try $0.append(remote ? 0x1 : 0 as UInt64)
        } decode: {
            try $0.readBool()
        }
    }

    // MARK: Following

    /// Calls `handler` with each change that the service signals to this connection, as long as the slot is held. There
    /// are none before ``subscribe(includingLocal:)``.
    package func onChange(_ handler: @escaping @BusActor (ExternalChange) -> Void) async throws -> Slot {
        try await connection.onSignal(path, Self.interface, "DidChangeExternally") { message in
            // A signal that can't be read comes from a newer service.
            if let signal = try? ExternalChange(message) { handler(signal) }
        }
    }

    /// `Subscribe`: makes the service signal changes of the store to this connection.
    ///
    /// - Parameter local: also signal changes by other processes of this device.
    /// - Returns: the present generation.
    @discardableResult
    package func subscribe(includingLocal local: Bool = true) async throws -> UInt64 {
        try await call("Subscribe") {
            try $0.append(local ? 0x1 : 0 as UInt64)
        } decode: {
            try $0.readUInt64()
        }
    }

    /// `Unsubscribe`: ends the subscription.
    package func unsubscribe() async throws {
        try await call("Unsubscribe")
    }
}
