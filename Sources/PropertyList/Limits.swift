// SPDX-License-Identifier: Apache-2.0

/// What one store may hold. The section "Limits" of the D-Bus interface defines the numbers and how to count.
///
/// ``keyLength``, ``valueBytes`` and ``depth`` apply to each entry, wherever it comes from. ``keys`` and ``totalBytes``
/// apply to local writes only: a join with a remote may exceed them.
public struct Limits: Sendable, Hashable {
    /// The maximum number of keys in a store.
    public var keys: Int
    /// The maximum sum of the sizes of a store's values, in bytes. Keys do not count.
    public var totalBytes: Int
    /// The maximum size of one value, in bytes as ``Value/size`` counts them.
    public var valueBytes: Int
    /// The maximum length of a key, in UTF-16 code units.
    public var keyLength: Int
    /// The maximum depth of a value: containers around a scalar; `[]` has depth 1.
    public var depth: Int

    /// The default limits of a store: 1024 keys, 1,048,576 bytes for all values and for each one, keys of 128 UTF-16
    /// code units, depth 16.
    public static let standard = Limits()

    /// Makes limits; parameters default to those of ``standard``.
    public init(
        keys: Int = 1024,
        totalBytes: Int = 1_048_576,
        valueBytes: Int = 1_048_576,
        keyLength: Int = 128,
        depth: Int = 16
    ) {
        self.keys = keys
        self.totalBytes = totalBytes
        self.valueBytes = valueBytes
        self.keyLength = keyLength
        self.depth = depth
    }

    /// The limits by their names on the bus (property `Limits`, `a{st}`), in their order there.
    package static let names: [(name: String, path: any WritableKeyPath<Limits, Int> & Sendable)] = [
        ("keys", \.keys), ("total-bytes", \.totalBytes), ("value-bytes", \.valueBytes), ("key-length", \.keyLength),
        ("depth", \.depth),
    ]

    /// The limits under their names.
    public var namedValues: [(name: String, value: UInt64)] {
        Self.names.map { ($0.name, UInt64(clamping: self[keyPath: $0.path])) }
    }
}
