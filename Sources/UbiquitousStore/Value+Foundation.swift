// SPDX-License-Identifier: Apache-2.0

// Values as Foundation objects. Numbers become NSNumber, as on Apple's systems, so that `as? Bool`, `as? Int` and `as?
// Double` of an object give the same results.

internal import Foundation
package import PropertyList

extension Value {
    /// What `object(forKey:)` returns: NSNumber, String, Data, Date, [Any] or [String: Any].
    package var object: Any {
        switch self {
        case .boolean(let value): NSNumber(value: value)
        case .integer(let value): NSNumber(value: value)
        case .real(let value): NSNumber(value: value)
        case .string(let text): text.string
        case .data(let bytes): Data(bytes)
        case .date(let seconds): Date(timeIntervalSinceReferenceDate: seconds)
        case .array(let values): values.map(\.object)
        case .dictionary(let values): values.objects
        }
    }

    /// Makes the value of a Foundation object, or of a Swift value that becomes one.
    ///
    /// - Throws: ``UbiquitousStoreError`` if it is no property list, or nested deeper than a store allows.
    package init(object: Any) throws {
        try self.init(object: object, depth: 0)
    }

    private init(object: Any, depth: Int) throws {
        guard depth <= Limits.standard.depth else {
            throw UbiquitousStoreError(refusing: ValueError.tooDeep(limit: Limits.standard.depth))
        }
        switch object {
        case let number as NSNumber: self = try Value(number)
        // Foundation on Linux doesn't bridge it.
        case let number as CGFloat: self = .real(Double(number))
        case let string as String: self = .string(Text(string))
        case let data as Data: self = .data(Array(data))
        case let date as Date: self = .date(date.timeIntervalSinceReferenceDate)
        case let array as [Any]: self = .array(try array.map { try Value(object: $0, depth: depth + 1) })
        case let dictionary as [String: Any]:
            var values: [Text: Value] = [:]
            for (key, object) in dictionary { values[Text(key)] = try Value(object: object, depth: depth + 1) }
            self = .dictionary(values)
        case _ where isNil(object):
            throw UbiquitousStoreError(.invalidValue, "A nil in an Any is not a property list. Remove the key instead.")
        default:
            throw UbiquitousStoreError(
                .invalidValue, "A value of the type \(type(of: object)) is not a property list. Archive it to Data.")
        }
    }

    private init(_ number: NSNumber) throws {
        switch Character(Unicode.Scalar(UInt8(bitPattern: number.objCType.pointee))) {
        // An Int8 has the type "c" too. Only a boolean is of a class of its own.
        case "c" where type(of: number) == NSNumber.self: self = .integer(number.int64Value)
        case "c", "B": self = .boolean(number.boolValue)
        case "f", "d": self = .real(number.doubleValue)
        case "Q" where number.uint64Value > UInt64(Int64.max):
            throw UbiquitousStoreError(.invalidValue, "An integer can be \(Int64.max) at most.")
        default: self = .integer(number.int64Value)
        }
    }
}

/// Returns whether an `Any` is an optional without a value.
func isNil(_ object: Any) -> Bool {
    let mirror = Mirror(reflecting: object)
    return mirror.displayStyle == .optional && mirror.children.allSatisfy { isNil($0.value) }
}

extension [Text: Value] {
    /// Foundation objects by String. If keys differ only in how their characters are composed, so that Swift considers
    /// them equal, the one whose UTF-8 sorts last wins.
    package var objects: [String: Any] {
        let pairs = sorted { $0.key < $1.key }.map { ($0.key.string, $0.value.object) }
        return [String: Any](pairs) { $1 }
    }
}

/// The typed getters of `NSUbiquitousKeyValueStore`. Numbers are converted as by NSNumber, and nothing else is
/// converted. Any number but 0 is true, as Apple documents `boolValue`; NSNumber on Linux makes 0.5 false.
extension Value {
    var asBool: Bool {
        switch self {
        case .boolean(let value): value
        case .integer(let value): value != 0
        case .real(let value): value != 0
        default: false
        }
    }

    var asInt64: Int64 {
        switch self {
        case .boolean(let value): value ? 1 : 0
        case .integer(let value): value
        case .real(let value): NSNumber(value: value).int64Value
        default: 0
        }
    }

    var asDouble: Double {
        switch self {
        case .boolean(let value): value ? 1 : 0
        case .integer(let value): Double(value)
        case .real(let value): value
        default: 0
        }
    }
}
