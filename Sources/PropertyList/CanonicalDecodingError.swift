// SPDX-License-Identifier: Apache-2.0

/// Why bytes are not a canonical encoding, and where.
public struct CanonicalDecodingError: Error, Hashable {
    /// What is wrong.
    public enum Reason: Sendable, Hashable {
        /// The bytes end within this number.
        case truncated
        /// A varint that could be shorter.
        case varintNotShortest
        /// A varint beyond 64 bits.
        case varintTooLarge
        /// A length that exceeds the remaining bytes.
        case lengthBeyondEnd(UInt64)
        /// A count of more elements than the remaining bytes can hold.
        case countBeyondEnd(UInt64)
        /// A tag that the format doesn't define.
        case unknownTag(UInt8)
        /// A string or key that is not UTF-8.
        case invalidUTF8
        /// A string or key with U+0000.
        case containsNUL
        /// A string or key with a noncharacter, such as U+FFFF.
        case containsNoncharacter
        /// A dictionary's key that does not sort after the one before it.
        case keysOutOfOrder
        /// A dictionary's key that equals the one before it.
        case duplicateKey
        /// A date that is infinite or not a number.
        case dateNotFinite
        /// A container nested deeper than the limit.
        case tooDeep(limit: Int)
        /// The value's size exceeds the limit.
        case tooLarge(limit: Int)
        /// The number of bytes after the end.
        case trailingBytes(Int)
        /// A broken rule of the record around the values, as a clause that fits after "byte 12: ".
        case malformed(String)
    }

    /// What is wrong.
    public var reason: Reason
    /// Where the refused part begins, in bytes from the start of the input: the first byte of a length, count or other
    /// number; the tag of a value; the first byte of a key after its length; in a string or key, the byte that is not
    /// UTF-8, is U+0000 or begins a noncharacter.
    public var offset: Int

    /// Makes an error. Formats that contain values use ``Reason/malformed(_:)`` for their own rules.
    public init(_ reason: Reason, offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}

extension CanonicalDecodingError: CustomStringConvertible {
    /// A sentence with the offset. It contains nothing of the value.
    public var description: String {
        "The encoding is damaged or not ours, at byte \(offset): \(reason)."
    }
}

extension CanonicalDecodingError.Reason: CustomStringConvertible {
    /// A clause, without a full stop.
    public var description: String {
        switch self {
        case .truncated: "the bytes end within a number or before a value"
        case .varintNotShortest: "a number is longer than it need be"
        case .varintTooLarge: "a number has more than 64 bits"
        case .lengthBeyondEnd(let length): "a length of \(length) reaches beyond the end"
        case .countBeyondEnd(let count): "a count of \(count) does not fit into the bytes that are left"
        case .unknownTag(let tag): "\(tag) is not the tag of a value"
        case .invalidUTF8: "a string is not UTF-8"
        case .containsNUL: "a string contains U+0000"
        case .containsNoncharacter: "a string contains a noncharacter"
        case .keysOutOfOrder: "a dictionary's keys are out of order"
        case .duplicateKey: "a dictionary has a key twice"
        case .dateNotFinite: "a date is infinite or not a number"
        case .tooDeep(let limit): "containers are nested deeper than \(limit)"
        case .tooLarge(let limit): "the value is larger than \(limit) bytes"
        case .trailingBytes(let count): "bytes follow the end (\(count))"
        case .malformed(let clause): clause
        }
    }
}
