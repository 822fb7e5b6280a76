// SPDX-License-Identifier: Apache-2.0

/// A store's key: 1 to 128 UTF-16 code units, without U+0000 and noncharacters. Keys are compared and sorted by their
/// UTF-8 bytes.
///
/// The limit of the length is Apple's (`NSUbiquitousKeyValueStore`), which counts UTF-16 code units, so that a key that
/// fits there fits here.
public struct Key: Sendable, Hashable {
    /// The key as a text. Its `==`, hash and order are the key's.
    public let text: Text

    /// The key as a string. Do not compare strings: `String` compares by canonical equivalence.
    public var string: String { text.string }

    /// Makes a key. Throws the rule that the string breaks.
    ///
    /// - Parameter limit: the maximum number of UTF-16 code units.
    public init(_ string: String, limit: Int = Limits.standard.keyLength) throws(KeyError) {
        self.init(unchecked: string)
        if let violation = violation(limit: limit) { throw violation }
    }

    /// Makes a key without checking it: for keys from our own database, and for those that must be passed on although
    /// they break the rules. See ``violation``.
    public init(unchecked string: String) {
        text = Text(string)
    }

    /// The rule that the key breaks; `nil` if it is valid.
    public var violation: KeyError? { violation(limit: Limits.standard.keyLength) }

    /// Returns the rule that the key breaks if keys may have `limit` UTF-16 code units; `nil` if it is valid.
    public func violation(limit: Int) -> KeyError? {
        if text.utf8Count == 0 { return .empty }
        // A code unit takes at least one byte of UTF-8, so a short text needs no counting.
        if text.utf8Count > limit {
            let length = string.utf16.count
            if length > limit { return .tooLong(utf16Length: length, limit: limit) }
        }
        if text.containsNUL { return .containsNUL }
        return text.containsNoncharacter ? .containsNoncharacter : nil
    }
}

extension Key: Comparable, CustomStringConvertible {
    /// Whether the left one's UTF-8 sorts first.
    public static func < (left: Key, right: Key) -> Bool {
        left.text < right.text
    }

    /// The string.
    public var description: String { string }
}

/// Why a string cannot be a key.
public enum KeyError: Error, Hashable {
    /// The key is the empty string.
    case empty
    /// The key has more UTF-16 code units than the limit.
    case tooLong(utf16Length: Int, limit: Int = Limits.standard.keyLength)
    /// U+0000 is in the key.
    case containsNUL
    /// A noncharacter, such as U+FFFF, is in the key.
    case containsNoncharacter
}

extension KeyError: CustomStringConvertible {
    /// A sentence that says what is wrong and what to do. It never contains the key.
    public var description: String {
        switch self {
        case .empty: "The key is empty; give it at least one character."
        case .tooLong(let length, let limit): "The key has \(length) UTF-16 code units; shorten it to at most \(limit)."
        case .containsNUL: "The key contains U+0000; leave that character out."
        case .containsNoncharacter: "The key contains a noncharacter, such as U+FFFF; leave that character out."
        }
    }
}
