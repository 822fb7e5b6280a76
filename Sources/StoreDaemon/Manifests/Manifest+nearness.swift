// SPDX-License-Identifier: Apache-2.0

internal import AppManifest

extension Manifest {
    /// Whether one identifier may have been meant by the other: they differ in case, or in what is before a dot, as a
    /// team's prefix.
    static func isNear(_ one: String, _ other: String) -> Bool {
        let (one, other) = (one.lowercased(), other.lowercased())
        return one == other || one.hasSuffix("." + other) || other.hasSuffix("." + one)
    }
}
