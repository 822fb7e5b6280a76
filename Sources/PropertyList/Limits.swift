// SPDX-License-Identifier: Apache-2.0

/// What one store may hold. The numbers and how they are counted: section "Limits" of the interface.
///
/// ``keyLength``, ``valueBytes`` and ``depth`` are rules of one record and hold on every way in. ``keys`` and
/// ``totalBytes`` are for local writes: a merge with a remote may exceed them.
public struct Limits: Sendable, Hashable {
    /// The most keys in a store.
    public var keys: Int
    /// The largest sum of the sizes of a store's values, in bytes. Keys do not count.
    public var totalBytes: Int
    /// The largest size of one value, in bytes as ``Value/size`` counts them.
    public var valueBytes: Int
    /// The most UTF-16 code units in a key.
    public var keyLength: Int
    /// The deepest nesting of one value: containers around a scalar, `[]` is 1.
    public var depth: Int

    /// The limits that every store has: 1024 keys, 1,048,576 bytes for all values and for one, keys of 128, depth 16.
    public static let standard = Limits()

    /// Makes limits that differ from ``standard`` in what is given.
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

    /// The limits under their names on the bus (property `Limits`, `a{st}`), always in this order.
    public var namedValues: [(name: String, value: UInt64)] {
        [
            ("keys", keys), ("total-bytes", totalBytes), ("value-bytes", valueBytes), ("key-length", keyLength),
            ("depth", depth),
        ].map { ($0, UInt64(clamping: $1)) }
    }
}
