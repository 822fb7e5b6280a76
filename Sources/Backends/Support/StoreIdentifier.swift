// SPDX-License-Identifier: Apache-2.0

extension String {
    /// Whether a store can have this identifier: 1 to 255 visible ASCII characters. Others in a remote are ignored.
    package var isStoreIdentifier: Bool {
        (1...255).contains(utf8.count) && utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}
