// SPDX-License-Identifier: Apache-2.0

/// How much of the past a replica keeps.
package enum Retention {
    /// In microseconds.
    package static let day: UInt64 = 86_400_000_000
    /// How long a tombstone, and a value that was replaced, are kept.
    package static let microseconds: UInt64 = 90 * day
    /// With more of them in a store, the oldest tombstones go before their time.
    package static let tombstones = 4096
}
