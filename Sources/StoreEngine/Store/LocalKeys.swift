// SPDX-License-Identifier: Apache-2.0

package import PropertyList

/// The keys of a store that never leave the device, as the app's manifest names them.
package struct LocalKeys: Equatable, Sendable {
    private let keys: Set<Text>
    private let prefixes: [[UInt8]]

    /// No key is local.
    package static let none = LocalKeys([])

    /// Makes local keys from keys, and from prefixes of keys that end in `*`.
    package init(_ patterns: [String]) {
        let isPrefix: (String) -> Bool = { $0.utf8.last == UInt8(ascii: "*") }
        keys = Set(patterns.filter { !isPrefix($0) }.map { Text($0) })
        prefixes = patterns.filter(isPrefix).map { Array($0.utf8.dropLast()) }
    }

    /// Whether no key is local.
    package var isEmpty: Bool { keys.isEmpty && prefixes.isEmpty }

    /// Returns whether the key stays on the device.
    package func contains(_ key: Key) -> Bool {
        if isEmpty { return false }
        return keys.contains(key.text) || prefixes.contains { key.string.utf8.starts(with: $0) }
    }
}
