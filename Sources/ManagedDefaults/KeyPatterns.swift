// SPDX-License-Identifier: Apache-2.0

package import PropertyList

/// Keys, and prefixes of keys that end in `*`.
package struct KeyPatterns: Equatable, Sendable {
    /// As they are written in files, without repetition, in the order in which they came.
    package private(set) var patterns: [Text] = []
    private var keys: Set<Text> = []
    private var prefixes: [[UInt8]] = []

    /// Patterns that no key fits.
    package static let none = KeyPatterns([])

    /// Patterns by their texts.
    package init(_ patterns: some Sequence<Text>) {
        add(patterns)
    }

    /// Adds patterns.
    package mutating func add(_ added: some Sequence<Text>) {
        for pattern in added where !patterns.contains(pattern) {
            patterns.append(pattern)
            if pattern.string.utf8.last == UInt8(ascii: "*") {
                prefixes.append(Array(pattern.string.utf8.dropLast()))
            } else {
                keys.insert(pattern)
            }
        }
    }

    /// Whether a pattern is a key, or the beginning of keys and an asterisk, so that a key may fit it that was meant.
    package static func isLikely(_ pattern: Text) -> Bool {
        !pattern.string.isEmpty && !pattern.string.dropLast().contains("*")
    }

    /// Whether there are no patterns.
    package var isEmpty: Bool { patterns.isEmpty }

    /// Whether a key fits one of them.
    package func contains(_ key: Text) -> Bool {
        if isEmpty { return false }
        return keys.contains(key) || prefixes.contains { key.string.utf8.starts(with: $0) }
    }
}
