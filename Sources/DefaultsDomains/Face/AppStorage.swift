// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import Observation
internal import PropertyList
internal import Synchronization
internal import UbiquitousStore

/// A property that reads and writes a setting, as in Apple's SwiftUI: `@AppStorage("fontSize") var size = 12`.
///
/// The property has its initial value as long as the key has no value, or if the stored value can't be converted to its
/// type.
///
/// `withObservationTracking` tracks it, and reports changes by other programs and devices too.
@propertyWrapper
public struct AppStorage<Value> {
    private let key: String
    private let defaults: UserDefaults
    private let box: StorageBox
    private let read: (UserDefaults, String) -> Value
    private let write: (UserDefaults, String, Value) -> Void

    init(
        _ key: String, _ store: UserDefaults?, _ read: @escaping (UserDefaults, String) -> Value,
        _ write: @escaping (UserDefaults, String, Value) -> Void
    ) {
        self.key = key
        defaults = store ?? .standard
        box = StorageBoxes.box(key, defaults)
        self.read = read
        self.write = write
    }

    /// The effective value. Setting it writes to the own domain of `store`, which is the app's by default.
    public var wrappedValue: Value {
        get {
            box.access()
            return read(defaults, key)
        }
        nonmutating set { write(defaults, key, newValue) }
    }

    /// The property wrapper, for ``reset()``, ``isForced`` and ``values``.
    public var projectedValue: Self { self }

    /// Removes the value from that domain. If another layer has a value, that becomes the effective one.
    public func reset() { defaults.removeObject(forKey: key) }

    /// Whether an administrator forces or locks the setting. A control for it should then be disabled.
    public var isForced: Bool { defaults.objectIsForced(forKey: key) }
}

extension AppStorage: @unchecked Sendable where Value: Sendable {
    // @unchecked because closures convert values. They hold only what is Sendable, and the conformances of `Value`. If
    // these are an actor's, as those of a whole module may be, then so is the property, and only that actor uses it.
}

extension AppStorage where Value: Sendable {
    /// The effective values, the present one first. A slow loop skips intermediate values.
    public var values: UserDefaults.Values<Value> {
        UserDefaults.Values(of: Text(key), defaults.box) { [defaults, key, read] in read(defaults, key) }
    }
}

/// The object that observation tracks for one key. Tracking by a constant key path is much cheaper than by one with a
/// subscript.
final class StorageBox: Observable, Sendable {
    private let registrar = ObservationRegistrar()

    /// Never read; its key path is what observation tracks.
    private var value: Void { () }

    func access() { registrar.access(self, keyPath: \.value) }

    fileprivate func changed() { registrar.withMutation(of: self, keyPath: \.value) {} }
}

/// The ``StorageBox`` of each key that properties use in one domain. It lives as long as the process.
///
/// All objects for a domain share it, so an app that makes an object per view adds nothing here, and observation
/// continues after the object is released.
final class StorageBoxes: Sendable {
    /// The search of the first object, which outlives that object.
    private let search: SearchBox
    private let boxes = Mutex<[Text: StorageBox]>([:])

    private init(_ search: SearchBox) { self.search = search }

    /// Returns the box of a key in an object's domain. From now on it is notified of changes of the object's value.
    static func box(_ key: String, _ defaults: UserDefaults) -> StorageBox {
        let search = defaults.box
        let boxes = search.process.storage.withLock { all in
            if let boxes = all[search.own] { return boxes }
            let boxes = StorageBoxes(search)
            all[search.own] = boxes
            return boxes
        }
        search.observeForStorage { boxes.tell($0) }
        return boxes.boxes.withLock { boxes in
            if let box = boxes[Text(key)] { return box }
            let box = StorageBox()
            boxes[Text(key)] = box
            return box
        }
    }

    private func tell(_ change: DefaultsChange) {
        let changed = boxes.withLock { boxes in change.changes.compactMap { boxes[$0.key] } }
        for box in changed { box.changed() }
    }
}

// MARK: - SwiftUI's initialisers

extension AppStorage {
    /// Makes a property of a type that has a getter.
    private init(
        _ key: String, _ store: UserDefaults?, _ value: Value, _ get: @escaping (PropertyList.Value) -> Value?
    )
    where Value: Sendable {
        self.init(key, store, { $0.box.value($1).flatMap(get) ?? value }, { $0.set($2, forKey: $1) })
    }

    /// Makes a property that is a Boolean.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == Bool {
        self.init(key, store, wrappedValue) { $0.scalar?.defaultsBool }
    }
    /// Makes a property that is an integer.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == Int {
        self.init(key, store, wrappedValue) { $0.scalar?.defaultsInteger }
    }
    /// Makes a property that is a number.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == Double {
        self.init(key, store, wrappedValue) { $0.scalar?.defaultsDouble }
    }
    /// Makes a property that is a string.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == String {
        self.init(key, store, wrappedValue) { $0.defaultsString }
    }
    /// Makes a property that is a URL.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == URL {
        self.init(key, store, wrappedValue) { $0.defaultsURL }
    }
    /// Makes a property that is data.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == Data {
        self.init(key, store, wrappedValue) { $0.object as? Data }
    }
    /// Makes a property that is a date.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == Date {
        self.init(key, store, wrappedValue) { $0.object as? Date }
    }
    /// Makes a property of a type whose raw value is an integer.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil)
    where Value: RawRepresentable, Value.RawValue == Int {
        self.init(
            key, store, { $0.box.value($1)?.scalar.flatMap { Value(rawValue: $0.defaultsInteger) } ?? wrappedValue },
            { $0.set($2.rawValue, forKey: $1) })
    }
    /// Makes a property of a type whose raw value is a string.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil)
    where Value: RawRepresentable, Value.RawValue == String {
        self.init(
            key, store,
            { $0.box.value($1).flatMap { $0.defaultsString.flatMap(Value.init(rawValue:)) } ?? wrappedValue },
            { $0.set($2.rawValue, forKey: $1) })
    }
}

extension AppStorage where Value: ExpressibleByNilLiteral {
    private init<T>(_ key: String, _ store: UserDefaults?, _ get: @escaping (PropertyList.Value) -> T?)
    where Value == T? {
        self.init(key, store, { $0.box.value($1).flatMap(get) }, { $0.set($2, forKey: $1) })
    }

    /// Makes a property that is a Boolean or `nil`.
    public init(_ key: String, store: UserDefaults? = nil) where Value == Bool? {
        self.init(key, store) { $0.scalar?.defaultsBool }
    }
    /// Makes a property that is an integer or `nil`.
    public init(_ key: String, store: UserDefaults? = nil) where Value == Int? {
        self.init(key, store) { $0.scalar?.defaultsInteger }
    }
    /// Makes a property that is a number or `nil`.
    public init(_ key: String, store: UserDefaults? = nil) where Value == Double? {
        self.init(key, store) { $0.scalar?.defaultsDouble }
    }
    /// Makes a property that is a string or `nil`.
    public init(_ key: String, store: UserDefaults? = nil) where Value == String? {
        self.init(key, store) { $0.defaultsString }
    }
    /// Makes a property that is a URL or `nil`.
    public init(_ key: String, store: UserDefaults? = nil) where Value == URL? {
        self.init(key, store) { $0.defaultsURL }
    }
    /// Makes a property that is data or `nil`.
    public init(_ key: String, store: UserDefaults? = nil) where Value == Data? {
        self.init(key, store) { $0.object as? Data }
    }
    /// Makes a property that is a date or `nil`.
    public init(_ key: String, store: UserDefaults? = nil) where Value == Date? {
        self.init(key, store) { $0.object as? Date }
    }
    /// Makes a property that is `nil` or of a type whose raw value is an integer.
    public init<R: RawRepresentable>(_ key: String, store: UserDefaults? = nil)
    where Value == R?, R.RawValue == Int {
        self.init(
            key, store, { $0.box.value($1)?.scalar.flatMap { R(rawValue: $0.defaultsInteger) } },
            { $0.set($2?.rawValue, forKey: $1) })
    }
    /// Makes a property that is `nil` or of a type whose raw value is a string.
    public init<R: RawRepresentable>(_ key: String, store: UserDefaults? = nil)
    where Value == R?, R.RawValue == String {
        self.init(
            key, store, { $0.box.value($1).flatMap { $0.defaultsString.flatMap(R.init(rawValue:)) } },
            { $0.set($2?.rawValue, forKey: $1) })
    }
}
