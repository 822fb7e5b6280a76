// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import PropertyList
internal import SDBus

/// An app's store: settings that are synced between a user's devices.
///
/// ```swift
/// extension UbiquitousStore.Key<Int> {
///     static var fontSize: Self { Self("fontSize") }
/// }
///
/// let store = try await UbiquitousStore.open()
/// try await store.set(14, for: .fontSize)
/// for await change in store.changes where change.keys.contains("fontSize") {
///     print(try change.newValue(for: .fontSize) ?? 12)
/// }
/// ```
///
/// There are three ways to use it. The subscript reads and writes the copy in this process; it takes tens of
/// nanoseconds, and a write is sent without waiting. The methods call the service, and throw its errors. ``changes``
/// reports what others change.
///
/// All objects for one identifier in a process, including ``NSUbiquitousKeyValueStore``, share one copy: what one
/// writes the others read.
public final class UbiquitousStore: Sendable {
    private let store: SharedStore

    private init(_ store: SharedStore) {
        self.store = store
    }

    /// Which bus the service is on.
    public enum Bus: Sendable, Hashable {
        /// The system bus, where an installed service is.
        case system
        /// The session bus, where a user may run a service of their own.
        case session
        /// A bus by its address, such as `unix:path=/run/test/bus`.
        case address(String)

        fileprivate var name: String {
            switch self {
            case .system: "system"
            case .session: "session"
            case .address(let address): address
            }
        }
    }

    /// Opens a store.
    ///
    /// - Parameters:
    ///   - identifier: as a manifest declares it. `nil` is the app's default store: that of the environment variable
    ///     `UBIQUITOUS_STORE_IDENTIFIER`, of the manifest that names this program, or of the one that the service finds.
    ///   - bus: `nil` is what the environment variable `UBIQUITOUS_STORE_BUS` says (`system`, `session` or an address),
    ///     or else the system bus.
    /// - Returns: the store, once its values are in memory.
    /// - Throws: ``UbiquitousStoreError``, such as `notEntitled` and `serviceUnavailable`.
    public static func open(identifier: String? = nil, on bus: Bus? = nil) async throws -> UbiquitousStore {
        let store = StorePlace(identifier: identifier, bus: bus?.name).store
        try await store.refresh()
        return UbiquitousStore(store)
    }

    /// Declares an app's store for this user, for an app installed in a home directory, which the system service
    /// doesn't read. Call it at each start, before opening the store.
    ///
    /// - Parameters:
    ///   - manifest: an XML or binary property list; see <doc:DeclaringTheStore>.
    ///   - bus: as for ``open(identifier:on:)``.
    /// - Returns: the identifiers that it declares.
    /// - Throws: ``UbiquitousStoreError``: `invalidArguments` if the manifest is invalid, with the reason;
    ///   `notEntitled` if an installed manifest declares the identifier.
    @discardableResult
    public static func register(manifest: Data, on bus: Bus? = nil) async throws -> [String] {
        try OwnProcess.check()
        let address = StorePlace(identifier: "", bus: bus?.name).bus
        let connection = try await ServiceConnection.open(address, description: "UbiquitousStore")
        return try await connection.manager.registerManifest(Array(manifest))
    }

    /// The store's identifier.
    public var identifier: String { store.identifier }

    // MARK: In this process

    /// The value of a key in this process's copy; `nil` if there is none, or one that isn't of the key's type.
    ///
    /// Neither reading nor writing waits for the service. A value that no store can hold isn't set, and one that the
    /// service refuses later is reverted; ``changes`` reports both.
    public subscript<Value>(key: Key<Value>) -> Value? {
        get { store.value(key.name).flatMap { try? key.decode($0) } }
        set {
            do {
                try store.write([Text(key.name): try newValue.map { try key.encode($0) }])
            } catch {
                store.announce(refusing: key.name, error)
            }
        }
    }

    /// The value of a key in this process's copy, or a default.
    public subscript<Value>(key: Key<Value>, default defaultValue: @autoclosure () -> Value) -> Value {
        self[key] ?? defaultValue()
    }

    /// The keys in this process's copy, sorted by their UTF-8.
    public var keys: [String] { store.values.keys.sorted().map(\.string) }

    // MARK: In the service

    /// Returns the value of a key in the service, after all writes of this process.
    ///
    /// - Returns: `nil` if there is no value.
    /// - Throws: ``UbiquitousStoreError``: `typeMismatch` if the value isn't of the key's type.
    public func value<Value>(for key: Key<Value>) async throws -> Value? {
        try await store.settleQuietly()
        return try await store.object().value(key.name).map { try key.decode($0) }
    }

    /// Sets a value.
    ///
    /// When this returns, the value survives a crash of the app and the service; after
    /// ``synchronize(waitingForRemote:)``, also a power cut.
    ///
    /// Without a service this waits for one. Cancelling the task ends the wait, but not the write. If another program sets
    /// or removes the key before this one reaches the service again, that stays, and this value goes into the key's
    /// history. Against another device's value, the later one wins.
    ///
    /// - Throws: ``UbiquitousStoreError``. If the write is refused, because no store can hold it or there is no room
    ///   (`quotaExceeded`), the store is as before. After another error, such as a full disk, the value stays in this
    ///   process's copy, and the write is sent again until the service applies or refuses it.
    public func set<Value>(_ value: Value, for key: Key<Value>) async throws {
        try await store.writeAndWait([Text(key.name): try key.encode(value)])
    }

    /// Removes a value, if there is one.
    ///
    /// - Throws: as ``set(_:for:)``.
    public func remove<Value>(_ key: Key<Value>) async throws {
        try await store.writeAndWait([Text(key.name): nil])
    }

    /// Makes several changes atomically: all or none, and others never see only some of them. If the service was away,
    /// keys that another program has changed since are left out, as with ``set(_:for:)``.
    ///
    /// - Throws: as ``set(_:for:)``, and what `body` throws; then the store is as before.
    public func update(_ body: (inout Update) throws -> Void) async throws {
        var update = Update()
        try body(&update)
        if !update.changes.isEmpty { try await store.writeAndWait(update.changes) }
    }

    /// Makes the service write everything to disk, so that it survives a power cut, and takes in what has arrived.
    ///
    /// Values reach other devices without this call.
    ///
    /// - Parameter waitingForRemote: also wait until the upload is done and the remote's changes have arrived.
    /// - Returns: whether nothing is pending, or the upload is due. If false, changes stay on this device for now.
    /// - Throws: ``UbiquitousStoreError``.
    @discardableResult
    public func synchronize(waitingForRemote: Bool = false) async throws -> Bool {
        try await store.synchronize(waitingForRemote: waitingForRemote, timeout: waitingForRemote ? .forever : nil)
    }

    /// Returns a key's earlier values on this device, the newest first: at most 16, of the last 90 days.
    /// Those of all keys together have 1 MiB at most; the oldest go first.
    ///
    /// Values that aren't of the key's type are left out.
    ///
    /// - Throws: ``UbiquitousStoreError``.
    public func history<Value>(of key: Key<Value>) async throws -> [FormerValue<Value>] {
        // A write that waits keeps nobody from earlier values.
        do { try await store.settleQuietly() } catch is UbiquitousStoreError {}
        return try await store.object().history(key.name).compactMap { FormerValue($0, key) }
    }

    // MARK: Changes

    /// Changes from now on that this process doesn't make, and refused writes.
    ///
    /// Each loop gets all changes. Those it hasn't taken yet wait in bounded memory and are merged: a key's old value
    /// is then the one that the loop knows, and its new value the latest.
    public var changes: AsyncStream<Change> {
        let inbox = ChangeInbox(store)
        return AsyncStream {
            await inbox.next().map { Change($0) }
        } onCancel: {
            inbox.end()
        }
    }

    /// The state of the user's account: the present one, and each one that follows.
    ///
    /// Each loop gets all states, except those replaced before it takes them.
    public var account: AsyncStream<AccountState> { store.accountStates() }
}

extension UbiquitousStore {
    /// The changes of one ``UbiquitousStore/update(_:)``, which are made together.
    public struct Update {
        fileprivate var changes: Changes = [:]

        /// Sets a value.
        ///
        /// - Throws: ``UbiquitousStoreError`` if no store can hold it.
        public mutating func set<Value>(_ value: Value, for key: Key<Value>) throws {
            changes[Text(key.name)] = .some(try key.encode(value))
        }

        /// Removes a value.
        public mutating func remove<Value>(_ key: Key<Value>) {
            changes[Text(key.name)] = .some(nil)
        }
    }
}
