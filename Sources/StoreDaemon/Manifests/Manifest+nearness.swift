// SPDX-License-Identifier: Apache-2.0

internal import AppManifest

extension Manifest {
    /// Whether one identifier may have been written for the other: they differ only in case, or in a prefix that ends
    /// with a dot, such as a team's.
    static func isNear(_ one: String, _ other: String) -> Bool {
        let (one, other) = (one.lowercased(), other.lowercased())
        return one == other || one.hasSuffix("." + other) || other.hasSuffix("." + one)
    }
}
