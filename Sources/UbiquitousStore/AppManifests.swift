// SPDX-License-Identifier: Apache-2.0

/// The manifests that are installed on this system.
struct AppManifests {
    /// The store that the manifest of this program declares.
    var identifierOfThisProgram: String? { nil }
}
