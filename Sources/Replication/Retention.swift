// SPDX-License-Identifier: Apache-2.0

/// How much of the past a replica keeps.
package enum Retention {
    /// A day, in microseconds.
    package static let day: UInt64 = 86_400_000_000
    /// How long tombstones and replaced values are kept, in microseconds.
    package static let microseconds: UInt64 = 90 * day
    /// The number of tombstones in a store beyond which the oldest go early.
    package static let tombstones = 4096
}

/// The largest state of a store that devices publish and read: docs/remote-format.md, "Limits".
package enum StoreBounds {
    /// The maximum number of entries, including tombstones.
    package static let entries = 8192
    /// The maximum size of the entries, in bytes.
    package static let bytes = 8 << 20
}
