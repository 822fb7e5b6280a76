// SPDX-License-Identifier: Apache-2.0

/// Limits that no genuine entry exceeds.
package enum EntryLimits {
    /// The maximum length of a key, in bytes: far above the rule for keys, so that keys that break it are passed on.
    package static let keyBytes = 4096
    /// The length of the shortest entry, in bytes: an empty key, flags, wall, counter, origin, n.
    package static let shortestEntry = 6
    /// About how many bytes an entry takes in memory besides its value.
    package static let memory = 160
    /// The greatest number of a dot, because SQLite's integers are signed.
    package static let n = UInt64(Int64.max)
}
