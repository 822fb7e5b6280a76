// SPDX-License-Identifier: Apache-2.0

/// A store's key: 1 to 128 UTF-16 code units, without U+0000; compared and sorted by its UTF-8 bytes.
///
/// The length is Apple's (`NSUbiquitousKeyValueStore`), which counts UTF-16, so that a key that fits there fits here.
public struct Key: Sendable, Hashable {
    /// The key as a text. Its `==`, hash and order are the key's.
    public let text: Text

    /// The key as a string. Do not compare it: `String` compares by canonical equivalence.
    public var string: String { text.string }

    /// Makes a key, or throws the rule that the string breaks.
    public init(_ string: String) throws(KeyError) {
        self.init(unchecked: string)
        if let violation { throw violation }
    }

    /// Makes a key without looking at it: for keys out of our own database, and for those that must be carried though
    /// they break the rules. ``violation`` tells.
    public init(unchecked string: String) {
        text = Text(string)
    }

    /// The rule that the key breaks, or `nil`.
    public var violation: KeyError? {
        if text.utf8Count == 0 { return .empty }
        // A code unit is at least one byte of UTF-8, so that a short text needs no counting.
        if text.utf8Count > Limits.standard.keyLength {
            let length = string.utf16.count
            if length > Limits.standard.keyLength { return .tooLong(utf16Length: length) }
        }
        return text.containsNUL ? .containsNUL : nil
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
    /// The key has no character.
    case empty
    /// The key is longer than 128 UTF-16 code units; it has so many.
    case tooLong(utf16Length: Int)
    /// U+0000 is in the key.
    case containsNUL
}

extension KeyError: CustomStringConvertible {
    /// A sentence that says what is wrong and what to do. It never holds the key.
    public var description: String {
        let limit = Limits.standard.keyLength
        return switch self {
        case .empty: "The key is empty; give it 1 to \(limit) UTF-16 code units."
        case .tooLong(let length): "The key has \(length) UTF-16 code units; shorten it to at most \(limit)."
        case .containsNUL: "The key contains U+0000; leave that character out."
        }
    }
}
