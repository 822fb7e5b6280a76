// SPDX-License-Identifier: Apache-2.0

/// Which release of this package it is.
public enum Release {
    /// As the service says it on the bus, and both programs to `--version`.
    public static let version = "0.1.0"
}
