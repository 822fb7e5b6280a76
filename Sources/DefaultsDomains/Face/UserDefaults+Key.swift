// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import PropertyList
internal import Synchronization
internal import UbiquitousStore

extension UserDefaults {
    /// A key with the type of its value and its default value.
    ///
    /// ```swift
    /// extension UserDefaults.Key<Int> {
    ///     static var fontSize: Self { Self("fontSize", default: 12) }
    /// }
    /// ```
    ///
    /// Booleans, numbers, strings, data, dates, and arrays and dictionaries of them are stored with their own types.
    /// Other `Codable` values become dictionaries and arrays, as by `PropertyListEncoder`. If the type is an optional,
    /// setting `nil` removes the value.
    public struct Key<Value: Codable> {
        /// The key's name: 1 to 512 UTF-16 code units, without U+0000 and noncharacters.
        public let name: String
        /// The value to return if no layer has one of the key's type.
        public let defaultValue: Value

        /// Makes a key.
        public init(_ name: String, default defaultValue: Value) {
            self.name = name
            self.defaultValue = defaultValue
        }
    }

    /// The effective value of a key; setting it writes to the object's own domain.
    public subscript<Value>(key: Key<Value>) -> Value {
        get { box.value(key.name).flatMap { key.decode($0) } ?? key.defaultValue }
        set {
            do {
                try write([Text(key.name): try key.encode(newValue)])
            } catch {
                refuse(key.name, error)
            }
        }
    }

    /// Sets a value, and returns when the service has it.
    ///
    /// Without a service, it waits until there is one.
    ///
    /// - Throws: ``UbiquitousStoreError`` if it is refused, and then nothing has changed; `CancellationError` if the
    ///   task is cancelled, and then the value is set as by the subscript.
    public func set<Value>(_ value: Value, for key: Key<Value>) async throws {
        try await update { try $0.set(value, for: key) }
    }

    /// The changes of one ``update(_:)``, which are made together.
    public struct Update {
        fileprivate var changes: Changes = [:]

        /// Sets a value.
        ///
        /// - Throws: ``UbiquitousStoreError`` if no domain can hold it.
        public mutating func set<Value>(_ value: Value, for key: Key<Value>) throws {
            changes[Text(key.name)] = .some(try key.encode(value))
        }

        /// Removes a value.
        public mutating func remove<Value>(_ key: Key<Value>) {
            changes[Text(key.name)] = .some(nil)
        }
    }

    /// Makes several changes, all or none, and returns when the service has them.
    ///
    /// Without a service, it waits until there is one.
    ///
    /// - Throws: ``UbiquitousStoreError`` if they are refused, and what `body` throws, and then nothing has changed;
    ///   `CancellationError` if the task is cancelled; the changes are then still sent, and made or refused as a whole.
    public func update(_ body: (inout Update) throws -> Void) async throws {
        var update = Update()
        try body(&update)
        let changes = update.changes
        if changes.isEmpty { return }
        let outcome = Outcome()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                outcome.continuation.withLock { $0 = continuation }
                do { try write(changes, isWhole: true) { outcome.finish($0) } } catch { outcome.finish(error) }
                // The cancellation handler may have run before.
                if Task.isCancelled { outcome.finish(CancellationError()) }
            }
        } onCancel: {
            outcome.finish(CancellationError())
        }
    }

    /// The caller that waits for changes.
    private final class Outcome: Sendable {
        let continuation = Mutex<CheckedContinuation<Void, any Error>?>(nil)

        /// Resumes the caller, unless it was resumed before.
        func finish(_ error: (any Error)?) {
            continuation.withLock { $0.take() }?.resume(with: error.map { .failure($0) } ?? .success(()))
        }
    }
}

// Not of every key, because a value's conformances may be an actor's, and are used where the key is.
extension UserDefaults.Key: Sendable where Value: Sendable {}

extension UserDefaults.Key {
    /// - Returns: `nil` if the key is to be removed.
    func encode(_ value: Value) throws -> PropertyList.Value? {
        if let optional = value as? any OptionalValue, optional.isNone { return nil }
        if let url = value as? URL { return try PropertyList.Value(defaultsURL: url, home: NSHomeDirectory()) }
        return try UbiquitousStore.Key<Value>(name).encode(value)
    }

    /// Converts a value as the type's getter does, because arguments are strings; other types are decoded.
    func decode(_ value: PropertyList.Value) -> Value? {
        let coerced: Any? =
            switch Value.self {
            case is Bool.Type, is Bool?.Type: value.scalar?.defaultsBool
            case is Int.Type, is Int?.Type: value.scalar?.defaultsInteger
            case is Double.Type, is Double?.Type: value.scalar?.defaultsDouble
            case is Float.Type, is Float?.Type: value.scalar?.defaultsFloat
            case is String.Type, is String?.Type: value.defaultsString
            case is URL.Type, is URL?.Type: value.defaultsURL
            default: nil
            }
        // Unwrapped first: `nil as? Int?` succeeds.
        if let coerced, let result = coerced as? Value { return result }
        return try? UbiquitousStore.Key<Value>(name).decode(value)
    }
}

/// An optional of any type.
protocol OptionalValue {
    var isNone: Bool { get }
}

extension Optional: OptionalValue {
    var isNone: Bool { if case .none = self { true } else { false } }
}
