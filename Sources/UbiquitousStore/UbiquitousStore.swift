// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import PropertyList
internal import SDBus

/// An app's store: settings that are the same on all of a person's devices.
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
/// Three ways lead to a value. The subscript reads and writes the copy in this process: it takes no time, and a write is
/// sent without waiting. The methods ask the service, and throw what goes wrong. And ``changes`` tells what others do.
///
/// Stores of one identifier in one process, ``NSUbiquitousKeyValueStore`` among them, share the copy: what one writes
/// the others read.
public final class UbiquitousStore: Sendable {
    private let store: SharedStore

    private init(_ store: SharedStore) {
        self.store = store
    }

    /// Which bus the service is on.
    public enum Bus: Sendable, Hashable {
        /// The system bus, where an installed service is.
        case system
        /// The session bus, where a person may run one of their own.
        case session
        /// A bus by its address, as `unix:path=/run/test/bus`.
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
    /// - Returns: the store, when its values are in memory.
    /// - Throws: ``UbiquitousStoreError``, such as `notEntitled` and `serviceUnavailable`.
    public static func open(identifier: String? = nil, on bus: Bus? = nil) async throws -> UbiquitousStore {
        let store = StorePlace(identifier: identifier, bus: bus?.name).store
        try await store.refresh()
        return UbiquitousStore(store)
    }

    /// Declares an app's store for this person: for an app that is installed in a home, where the system's service
    /// doesn't look. Call it at each start, before the store is opened.
    ///
    /// - Parameters:
    ///   - manifest: an XML or binary property list; see the page about manifests.
    ///   - bus: as for ``open(identifier:on:)``.
    /// - Returns: the identifiers that it declares.
    /// - Throws: ``UbiquitousStoreError``: `invalidArguments` says what is wrong in the manifest, `notEntitled` that
    ///   an installed one declares the identifier.
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
    /// Reading and writing take no time. A value that no store can hold isn't set, and one that the service refuses later
    /// is taken back; ``changes`` tells of both.
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

    /// What the service has for a key, with what this process has written.
    ///
    /// - Returns: `nil` if there is no value.
    /// - Throws: ``UbiquitousStoreError``: `typeMismatch` if the value isn't of the key's type.
    public func value<Value>(for key: Key<Value>) async throws -> Value? {
        try await store.settleQuietly()
        return try await store.object().value(key.name).map { try key.decode($0) }
    }

    /// Sets a value.
    ///
    /// When this returns the value survives a crash of app and service; after ``synchronize(waitingForRemote:)``, a
    /// power cut.
    ///
    /// - Throws: ``UbiquitousStoreError`` if it is refused, and then the store is as before. Without a service this waits
    ///   for one; cancel the task to wait no longer, which leaves the write on its way.
    public func set<Value>(_ value: Value, for key: Key<Value>) async throws {
        try await store.writeAndWait([Text(key.name): try key.encode(value)])
    }

    /// Removes a value; that there is none is no error.
    ///
    /// - Throws: as ``set(_:for:)``.
    public func remove<Value>(_ key: Key<Value>) async throws {
        try await store.writeAndWait([Text(key.name): nil])
    }

    /// Makes several changes, all or none of them. Others never see one without the others.
    ///
    /// - Throws: as ``set(_:for:)``, and what `body` throws; then the store is as before.
    public func update(_ body: (inout Update) throws -> Void) async throws {
        var update = Update()
        try body(&update)
        if !update.changes.isEmpty { try await store.writeAndWait(update.changes) }
    }

    /// Has everything written before put on disk, so that it survives a power cut, and takes in what has arrived.
    ///
    /// There is no need to call it for values to reach other devices.
    ///
    /// - Parameter waitingForRemote: also wait until the account's remote has it, and its changes are here.
    /// - Returns: whether nothing waits for its upload, or the upload is due. False: it stays on this device for now.
    /// - Throws: ``UbiquitousStoreError``.
    @discardableResult
    public func synchronize(waitingForRemote: Bool = false) async throws -> Bool {
        try await store.synchronize(waitingForRemote: waitingForRemote, timeout: waitingForRemote ? .forever : nil)
    }

    /// What a key held before on this device, the newest first: 16 values at most, of the last 90 days.
    ///
    /// Values that aren't of the key's type are left out.
    ///
    /// - Throws: ``UbiquitousStoreError``.
    public func history<Value>(of key: Key<Value>) async throws -> [FormerValue<Value>] {
        try await store.settleQuietly()
        return try await store.object().history(key.name).compactMap { FormerValue($0, key) }
    }

    // MARK: Being told

    /// What changes from now on otherwise than by this process, and what is refused.
    ///
    /// Each loop over it has its own. What it hasn't taken yet waits for it, in bounded memory: changes that wait are
    /// joined, so that a key's old value is the one that the loop knows and its new value the latest.
    public var changes: AsyncStream<Change> {
        let inbox = ChangeInbox(store)
        return AsyncStream {
            await inbox.next().map { Change($0) }
        } onCancel: {
            inbox.end()
        }
    }

    /// The state of the person's account: the present one, and each one that follows.
    ///
    /// Each loop over it has its own; a state that was replaced before it was taken isn't seen.
    public var account: AsyncStream<AccountState> { store.accountStates() }
}

extension UbiquitousStore {
    /// Changes that only go together, in ``UbiquitousStore/update(_:)``.
    public struct Update {
        fileprivate var changes: Changes = [:]

        /// Sets a value.
        ///
        /// - Throws: ``UbiquitousStoreError`` if it is none that a store can hold.
        public mutating func set<Value>(_ value: Value, for key: Key<Value>) throws {
            changes[Text(key.name)] = .some(try key.encode(value))
        }

        /// Removes a value.
        public mutating func remove<Value>(_ key: Key<Value>) {
            changes[Text(key.name)] = .some(nil)
        }
    }
}
