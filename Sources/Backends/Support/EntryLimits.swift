// SPDX-License-Identifier: Apache-2.0

/// What is too large or too late to be anybody's honest entry.
package enum EntryLimits {
    /// Far above what a key may have, so that keys that break the rules are still passed on.
    package static let keyBytes = 4096
    /// The most entries of a store, tombstones included.
    package static let entries = 8192
    /// The most bytes of a store's entries.
    package static let storeBytes = 8 << 20
    /// The shortest entry: an empty key, flags, wall, counter, origin, n.
    package static let shortestEntry = 6
    /// SQLite's integers are signed.
    package static let n = UInt64(Int64.max)
}
