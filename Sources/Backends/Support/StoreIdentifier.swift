// SPDX-License-Identifier: Apache-2.0

extension String {
    /// Whether a store can have this identifier. Others in a remote are ignored.
    package var isStoreIdentifier: Bool { utf8.isStoreIdentifier }
}

extension Collection<UInt8> {
    /// Whether these are the bytes of a store's identifier: 1 to 255 visible ASCII characters, so that comparing
    /// identifiers compares bytes.
    package var isStoreIdentifier: Bool {
        (1...255).contains(count) && allSatisfy { (0x21...0x7E).contains($0) }
    }
}
