// SPDX-License-Identifier: Apache-2.0

package import PropertyList

/// The keys of a store that never leave the device, as the app's manifest names them.
package struct LocalKeys: Equatable, Sendable {
    private let keys: Set<Text>
    /// Sorted. None begins with another one.
    private let prefixes: [[UInt8]]

    /// No key is local.
    package static let none = LocalKeys([])

    /// Makes local keys from keys, and from prefixes of keys that end in `*`.
    package init(_ patterns: [String]) {
        let isPrefix: (String) -> Bool = { $0.utf8.last == UInt8(ascii: "*") }
        keys = Set(patterns.filter { !isPrefix($0) }.map { Text($0) })
        let sorted = patterns.filter(isPrefix).map { Array($0.utf8.dropLast()) }
            .sorted { $0.lexicographicallyPrecedes($1) }
        prefixes = sorted.reduce(into: []) { kept, prefix in
            if kept.last.map({ !prefix.starts(with: $0) }) ?? true { kept.append(prefix) }
        }
    }

    /// Whether no key is local.
    package var isEmpty: Bool { keys.isEmpty && prefixes.isEmpty }

    /// Returns whether the key stays on the device.
    package func contains(_ key: Key) -> Bool {
        if isEmpty { return false }
        return keys.contains(key.text) || hasPrefix(key.string.utf8)
    }

    /// Only the last prefix that doesn't follow the key can be one of the key's: whatever is between would begin with it.
    private func hasPrefix(_ key: String.UTF8View) -> Bool {
        var (low, high) = (0, prefixes.count)
        while low < high {
            let middle = (low + high) / 2
            if key.lexicographicallyPrecedes(prefixes[middle]) { high = middle } else { low = middle + 1 }
        }
        return low > 0 && key.starts(with: prefixes[low - 1])
    }
}
