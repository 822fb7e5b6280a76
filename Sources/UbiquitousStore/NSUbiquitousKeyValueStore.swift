// SPDX-License-Identifier: Apache-2.0

// Apple's class, for code written for it. Apple's documentation of Foundation describes each member; comments here
// cover what it leaves open and where this class differs.

public import Foundation
internal import PropertyList

/// A store of the app's settings that is synced between a user's devices, as in Apple's Foundation.
///
/// Reads come from memory. A write changes memory at once and is sent to the service without waiting; if the service
/// refuses it, it is reverted and announced. The class is thread-safe.
open class NSUbiquitousKeyValueStore: NSObject, @unchecked Sendable {
    // @unchecked because NSObject isn't Sendable; the only property is, and never changes.
    private let store: SharedStore
    private let observer: NotificationPoster

    /// The app's store.
    ///
    /// Its identifier is the first of these that exists: that of ``use(identifier:bus:)``, the environment variable
    /// `UBIQUITOUS_STORE_IDENTIFIER`, that of the installed manifest that names this program, or that of the manifest
    /// that the service finds for it.
    open class var `default`: NSUbiquitousKeyValueStore { DefaultStore.shared.object }

    /// Creates an object for the same store as ``default``.
    public override init() {
        store = DefaultStore.shared.place.store
        observer = NotificationPoster()
        super.init()
        observer.post(store, about: self)
    }

    init(_ place: StorePlace) {
        store = place.store
        observer = NotificationPoster()
        super.init()
        observer.post(store, about: self)
    }

    deinit {
        observer.stop(store)
    }

    // MARK: Getting values

    /// Returns the value of a key, as NSNumber, String, Data, Date, an array or a dictionary; `nil` if there is none.
    open func object(forKey aKey: String) -> Any? {
        store.value(aKey)?.object
    }

    /// Returns the string of a key; `nil` if there is no value or one of another type.
    open func string(forKey aKey: String) -> String? {
        if case .string(let text) = store.value(aKey) { text.string } else { nil }
    }

    /// Returns the array of a key; `nil` if there is no value or one of another type.
    open func array(forKey aKey: String) -> [Any]? {
        if case .array(let values) = store.value(aKey) { values.map(\.object) } else { nil }
    }

    /// Returns the dictionary of a key; `nil` if there is no value or one of another type.
    open func dictionary(forKey aKey: String) -> [String: Any]? {
        if case .dictionary(let values) = store.value(aKey) { values.objects } else { nil }
    }

    /// Returns the data of a key; `nil` if there is no value or one of another type.
    open func data(forKey aKey: String) -> Data? {
        if case .data(let bytes) = store.value(aKey) { Data(bytes) } else { nil }
    }

    /// Returns the integer of a key. Other numbers are converted as by NSNumber; 0 if there is none.
    open func longLong(forKey aKey: String) -> Int64 {
        store.value(aKey)?.asInt64 ?? 0
    }

    /// Returns the real number of a key. Other numbers are converted as by NSNumber; 0 if there is none.
    open func double(forKey aKey: String) -> Double {
        store.value(aKey)?.asDouble ?? 0
    }

    /// Returns the Boolean of a key. Other numbers are converted as by NSNumber; false if there is none.
    open func bool(forKey aKey: String) -> Bool {
        store.value(aKey)?.asBool ?? false
    }

    /// All keys and values in memory.
    open var dictionaryRepresentation: [String: Any] { store.values.objects }

    // MARK: Setting values

    /// Sets a property list; `nil` removes.
    ///
    /// A value that is no property list, such as a URL, or a key that is too long is logged and ignored; the
    /// notification has the error and no reason. On Apple's systems, a key that is too long ends the app. A
    /// `Decimal` becomes a real number, as on Apple's systems.
    open func set(_ anObject: Any?, forKey aKey: String) {
        write(aKey) { try anObject.map { try Value(object: $0) } }
    }

    /// Sets a string; `nil` removes.
    open func set(_ aString: String?, forKey aKey: String) {
        write(aKey) { aString.map { .string(Text($0)) } }
    }

    /// Sets data; `nil` removes.
    open func set(_ aData: Data?, forKey aKey: String) {
        write(aKey) { aData.map { .data(Array($0)) } }
    }

    /// Sets an array of property lists; `nil` removes.
    open func set(_ anArray: [Any]?, forKey aKey: String) {
        write(aKey) { try anArray.map { try Value(object: $0) } }
    }

    /// Sets a dictionary of property lists; `nil` removes.
    open func set(_ aDictionary: [String: Any]?, forKey aKey: String) {
        write(aKey) { try aDictionary.map { try Value(object: $0) } }
    }

    /// Sets an integer.
    open func set(_ value: Int64, forKey aKey: String) {
        write(aKey) { .integer(value) }
    }

    /// Sets a real number.
    open func set(_ value: Double, forKey aKey: String) {
        write(aKey) { .real(value) }
    }

    /// Sets a Boolean.
    open func set(_ value: Bool, forKey aKey: String) {
        write(aKey) { .boolean(value) }
    }

    /// Removes a key, if it is there.
    open func removeObject(forKey aKey: String) {
        write(aKey) { nil }
    }

    private func write(_ key: String, _ value: () throws -> Value?) {
        do {
            try store.write([Text(key): try value()])
        } catch {
            store.announce(refusing: key, error)
        }
    }

    // MARK: Synchronizing

    /// Makes the service write everything to disk, and takes in what it has received from other devices.
    ///
    /// It waits at most one second; after a timeout, not again until the service has responded. Call it only when the
    /// app starts. A process that ends by `exit` or by returning from `main` waits at most 0.1 s for the service to
    /// accept its writes; if the service may be slow, call this first.
    ///
    /// - Returns: false if there is no service, it doesn't answer in time, or the app has no manifest.
    @discardableResult
    open func synchronize() -> Bool { store.synchronizeSoon() }
}

// MARK: - Notifications

extension NSUbiquitousKeyValueStore {
    /// Posted when another device or another process changed values, and when a write was refused and reverted. The
    /// object is the store.
    ///
    /// It is posted on a serial queue of the store, never on the main thread, as on Apple's systems, where the queue is
    /// `com.apple.kvs.client.callback`. To update the user interface, observe with `queue: .main`, or hop to the main
    /// actor.
    public static let didChangeExternallyNotification = NSNotification.Name(
        "NSUbiquitousKeyValueStoreDidChangeExternallyNotification")
}

extension NSUbiquitousKeyValueStore {
    /// Sets the store and the bus of ``default``. Call it before the first use of ``default``.
    ///
    /// - Parameters:
    ///   - identifier: as a manifest declares it; `nil` leaves it to the environment and the manifests.
    ///   - bus: `system`, `session` or an address; `nil` leaves it to the environment.
    /// - Returns: false if ``default`` was already in use; nothing changes then.
    @discardableResult
    public class func use(identifier: String?, bus: String? = nil) -> Bool {
        DefaultStore.shared.use(identifier: identifier, bus: bus)
    }
}
