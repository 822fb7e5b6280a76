// SPDX-License-Identifier: Apache-2.0

package import PropertyList

/// A set of keys, given as keys and as prefixes that end in `*`.
package struct KeyPatterns: Equatable, Sendable {
    /// The patterns as they are written in files, without repetitions, in the order in which they were added.
    package private(set) var patterns: [Text] = []
    private var known: Set<Text> = []
    private var keys: Set<Text> = []
    private var prefixes: [[UInt8]] = []

    /// Patterns that match no key.
    package static let none = KeyPatterns([])

    /// Makes patterns from their texts.
    package init(_ patterns: some Sequence<Text>) {
        add(patterns)
    }

    /// Adds patterns.
    package mutating func add(_ added: some Sequence<Text>) {
        for pattern in added where known.insert(pattern).inserted {
            patterns.append(pattern)
            if Self.isPrefix(pattern) {
                prefixes.append(Array(pattern.string.utf8.dropLast()))
            } else {
                keys.insert(pattern)
            }
        }
    }

    /// Returns whether a pattern is a prefix, and an asterisk after it.
    package static func isPrefix(_ pattern: Text) -> Bool { pattern.string.utf8.last == UInt8(ascii: "*") }

    /// Returns whether a pattern is a key, or a prefix with one asterisk at its end. Others are probably mistakes.
    package static func isLikely(_ pattern: Text) -> Bool {
        !pattern.string.isEmpty && !pattern.string.utf8.dropLast().contains(UInt8(ascii: "*"))
    }

    /// Returns one of the patterns that matches every key that another pattern matches; `nil` if none does.
    package func pattern(covering other: Text) -> Text? {
        patterns.first { pattern in
            guard Self.isPrefix(pattern) else { return pattern == other }
            return other.string.utf8.starts(with: pattern.string.utf8.dropLast())
        }
    }

    /// Whether there are no patterns.
    package var isEmpty: Bool { patterns.isEmpty }

    /// Returns whether a key matches one of the patterns.
    package func contains(_ key: Text) -> Bool {
        if isEmpty { return false }
        return keys.contains(key) || prefixes.contains { key.string.utf8.starts(with: $0) }
    }
}
