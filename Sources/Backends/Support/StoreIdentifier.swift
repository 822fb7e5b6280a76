// SPDX-License-Identifier: Apache-2.0

extension String {
    /// Whether a store can have this identifier; what a remote names otherwise is none of ours.
    package var isStoreIdentifier: Bool {
        (1...255).contains(utf8.count) && utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}
