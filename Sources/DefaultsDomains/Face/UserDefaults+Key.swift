// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import PropertyList
internal import UbiquitousStore

extension UserDefaults {
    /// A key with the type of its value, and the value that it has where nobody says another.
    ///
    /// ```swift
    /// extension UserDefaults.Key<Int> {
    ///     static var fontSize: Self { Self("fontSize", default: 12) }
    /// }
    /// ```
    ///
    /// Booleans, numbers, strings, data, dates, and arrays and dictionaries of them are stored as what they are; other
    /// `Codable` values as dictionaries and arrays. Of an optional type `nil` removes.
    public struct Key<Value: Codable & Sendable>: Sendable {
        /// 1 to 512 UTF-16 code units, without U+0000.
        public let name: String
        /// What is read where no layer has a value, or one of another type.
        public let defaultValue: Value

        /// A key of this name.
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
                refuse([key.name], error)
            }
        }
    }

    /// Sets a value, and returns when the service has it.
    ///
    /// - Throws: ``UbiquitousStoreError`` if it is refused; nothing has changed then.
    public func set<Value>(_ value: Value, for key: Key<Value>) async throws {
        try await update { try $0.set(value, for: key) }
    }

    /// Several writes that go together, all or nothing.
    public struct Update {
        fileprivate var changes: Changes = [:]

        /// Sets a value.
        public mutating func set<Value>(_ value: Value, for key: Key<Value>) throws {
            changes[Text(key.name)] = .some(try key.encode(value))
        }

        /// Removes a value.
        public mutating func remove<Value>(_ key: Key<Value>) {
            changes[Text(key.name)] = .some(nil)
        }
    }

    /// Makes several writes, all or nothing, and returns when the service has them.
    ///
    /// - Throws: ``UbiquitousStoreError`` if they are refused, and what `body` throws; nothing has changed then.
    public func update(_ body: (inout Update) throws -> Void) async throws {
        var update = Update()
        try body(&update)
        let changes = update.changes
        if changes.isEmpty { return }
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            do {
                try write(changes, isWhole: true) { error in
                    continuation.resume(with: error.map { .failure($0) } ?? .success(()))
                }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }
}

extension UserDefaults.Key {
    /// - Returns: `nil`: the key is removed.
    func encode(_ value: Value) throws -> PropertyList.Value? {
        if let optional = value as? any OptionalValue, optional.isNone { return nil }
        if let url = value as? URL { return try PropertyList.Value(defaultsURL: url, home: NSHomeDirectory()) }
        return try UbiquitousStore.Key<Value>(name).encode(value)
    }

    /// What the getter of the type makes of a value, as arguments are strings; other types as they were encoded.
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
        return coerced as? Value ?? (try? UbiquitousStore.Key<Value>(name).decode(value))
    }
}

/// What tells whether an optional of any type is `nil`.
protocol OptionalValue {
    var isNone: Bool { get }
}

extension Optional: OptionalValue {
    var isNone: Bool { if case .none = self { true } else { false } }
}
