// SPDX-License-Identifier: Apache-2.0

// Values as Foundation has them. Numbers come out as NSNumber, as on Apple's systems: only so are `as? Bool`,
// `as? Int` and `as? Double` of an object what they are there.

internal import Foundation
internal import PropertyList

extension Value {
    /// What `object(forKey:)` returns: NSNumber, String, Data, Date, [Any] or [String: Any].
    var object: Any {
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

    /// The value of an object of Foundation, or of Swift's types that become one.
    ///
    /// - Throws: ``UbiquitousStoreError`` if it is no property list, or nested deeper than a store takes.
    init(object: Any) throws {
        try self.init(object: object, depth: 0)
    }

    private init(object: Any, depth: Int) throws {
        guard depth <= Limits.standard.depth else {
            throw UbiquitousStoreError(refusing: ValueError.tooDeep(limit: Limits.standard.depth))
        }
        switch object {
        case let number as NSNumber: self = try Value(number)
        // Linux's Foundation doesn't bridge it.
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
            throw UbiquitousStoreError(.invalidValue, "A nil in an Any is no property list. Remove the key instead.")
        default:
            throw UbiquitousStoreError(
                .invalidValue, "A value of the type \(type(of: object)) is no property list. Archive it to Data.")
        }
    }

    private init(_ number: NSNumber) throws {
        switch Character(Unicode.Scalar(UInt8(bitPattern: number.objCType.pointee))) {
        // An Int8 is no "c": Foundation has made an Int32 of it.
        case "c", "B": self = .boolean(number.boolValue)
        case "f", "d": self = .real(number.doubleValue)
        case "Q" where number.uint64Value > UInt64(Int64.max):
            throw UbiquitousStoreError(.invalidValue, "An integer can be \(Int64.max) at most.")
        default: self = .integer(number.int64Value)
        }
    }
}

/// Whether something that was converted to `Any` is an optional without a value.
func isNil(_ object: Any) -> Bool {
    let mirror = Mirror(reflecting: object)
    return mirror.displayStyle == .optional && mirror.children.allSatisfy { isNil($0.value) }
}

extension [Text: Value] {
    /// Objects of Foundation by String. Of keys that Swift takes for one, since they differ only in how their
    /// characters are composed, the one whose UTF-8 sorts last counts.
    var objects: [String: Any] {
        let pairs = sorted { $0.key < $1.key }.map { ($0.key.string, $0.value.object) }
        return [String: Any](pairs) { $1 }
    }
}

/// The typed getters of `NSUbiquitousKeyValueStore`: numbers convert among each other as NSNumber does it, and nothing
/// else converts. As Apple's page of `boolValue` has it, any number but 0 is true; Linux's NSNumber has 0.5 as false.
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
