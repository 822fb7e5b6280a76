// SPDX-License-Identifier: Apache-2.0

/// The release of this package.
package enum Release {
    /// The version, as the service reports it on the bus, and both programs with `--version`.
    package static let version = "0.1.0"
}
