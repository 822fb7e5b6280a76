// SPDX-License-Identifier: Apache-2.0

package import PropertyList

/// The digests of a state's entries, and of the state, which is the digest of those.
package struct StateDigests: Sendable {
    /// The digest of each entry, however it is stored.
    package let entries: [Key: Bits128]
    /// How much room each entry takes.
    package let sizes: [Key: Int]
    /// The digest of the state.
    package let state: Bits128

    /// Digests of their parts.
    package init(entries: [Key: Bits128], sizes: [Key: Int], state: Bits128) {
        (self.entries, self.sizes, self.state) = (entries, sizes, state)
    }

    /// The size of all entries together.
    package var totalSize: Int { sizes.values.reduce(0, +) }
}
