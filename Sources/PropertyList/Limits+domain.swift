// SPDX-License-Identifier: Apache-2.0

extension Limits {
    /// What one layer of a defaults domain may hold: 16,384 keys of 512, 4 MiB for all values and 1 MiB for one.
    public static let domain = Limits(keys: 16_384, totalBytes: 4 << 20, keyLength: 512)
}
