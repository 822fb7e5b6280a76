// SPDX-License-Identifier: Apache-2.0

/// The release of this package.
public enum Release {
    /// The version, as the service reports it on the bus, and both programs with `--version`.
    public static let version = "0.1.0"
}
