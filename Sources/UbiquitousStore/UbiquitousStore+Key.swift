// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import PropertyList

extension UbiquitousStore {
    /// A key with the type of its value.
    ///
    /// Declare keys once, with their type:
    ///
    /// ```swift
    /// extension UbiquitousStore.Key<[String]> {
    ///     static var recentFiles: Self { Self("recentFiles") }
    /// }
    /// ```
    ///
    /// Booleans, numbers, strings, data, dates, and arrays and dictionaries of them are stored with their own types, so
    /// that programs in any language can read them. Other `Codable` values become dictionaries and arrays, as by
    /// `PropertyListEncoder`.
    public struct Key<Value: Codable>: Sendable, Hashable {
        /// The key's name: 1 to 128 UTF-16 code units, without U+0000 and noncharacters.
        public let name: String

        /// Makes a key. Writes under an invalid name fail with `invalidKey` or `keyTooLong`.
        public init(_ name: String) {
            self.name = name
        }
    }
}

extension UbiquitousStore.Key {
    /// Unavailable: a missing value is `nil` already, and the property list of an optional would be a string.
    @available(*, unavailable, message: "Use the type without the optional; remove the key where it is nil.")
    public init<Wrapped>(_ name: String) where Value == Wrapped? {
        self.name = name
    }
}

extension UbiquitousStore.Key {
    package func encode(_ value: Value) throws -> PropertyList.Value {
        switch value {
        case is Bool, is Int, is Int64, is Double, is String, is Data, is Date: try PropertyList.Value(object: value)
        case _ where isNil(value):
            throw UbiquitousStoreError(.invalidValue, "A nil is not a value. Remove the key instead.")
        default: try encodeAny(value)
        }
    }

    private func encodeAny(_ value: Value) throws -> PropertyList.Value {
        do {
            let encoder = PropertyListEncoder()
            encoder.outputFormat = .binary
            // In an array, because a number alone is no document.
            let document = try encoder.encode([value])
            guard let objects = try PropertyListSerialization.propertyList(from: document, format: nil) as? [Any],
                let object = objects.first
            else { throw mismatch("not a property list") }
            return try PropertyList.Value(object: object)
        } catch let error as EncodingError {
            throw UbiquitousStoreError(.invalidValue, "A \(Value.self) can't be encoded.", cause: error)
        }
    }

    package func decode(_ value: PropertyList.Value) throws -> Value {
        if let quick = quickly(value) { return quick }
        do {
            let document = try PropertyListSerialization.data(
                fromPropertyList: [value.object], format: .binary, options: 0)
            return try PropertyListDecoder().decode([Value].self, from: document)[0]
        } catch {
            throw mismatch("\(value.kind)", error)
        }
    }

    /// Decodes the types that need no decoder.
    private func quickly(_ value: PropertyList.Value) -> Value? {
        switch value {
        case .boolean(let value): value as? Value
        case .integer(let value): value as? Value ?? Int(exactly: value) as? Value
        case .real(let value): value as? Value
        case .string(let text): text.string as? Value
        case .data where Value.self == Data.self, .date where Value.self == Date.self: value.object as? Value
        default: nil
        }
    }

    private func mismatch(_ kind: String, _ cause: (any Error)? = nil) -> UbiquitousStoreError {
        UbiquitousStoreError(
            .typeMismatch, "The key \"\(name)\" is read as \(Value.self), and what is stored is \(kind).", cause: cause)
    }
}

extension PropertyList.Value {
    /// The type's name in a sentence.
    fileprivate var kind: String {
        switch self {
        case .boolean: "a Boolean"
        case .integer: "an integer"
        case .real: "a real number"
        case .string: "a string"
        case .data: "data"
        case .date: "a date"
        case .array: "an array"
        case .dictionary: "a dictionary"
        }
    }
}
