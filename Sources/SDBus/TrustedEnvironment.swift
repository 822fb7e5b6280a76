// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// The environment, which a program with more rights than whoever started it must not trust: there it would let its
/// user choose the bus that the program takes its settings from.
package enum TrustedEnvironment {
    /// Whether the environment can be trusted: not in set-user-ID programs and the like (`AT_SECURE` in getauxval(3)).
    package static let isTrusted = getauxval(UInt(AT_SECURE)) == 0

    /// Returns a variable's value; `nil` if it is unset or empty, or the environment can't be trusted.
    package static subscript(_ name: String) -> String? {
        guard isTrusted, let value = getenv(name) else { return nil }
        return value.pointee == 0 ? nil : String(cString: value)
    }
}
