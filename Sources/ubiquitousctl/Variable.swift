// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Environment variables that this program reads.
enum Variable: String {
    case bus = "UBIQUITOUS_STORE_BUS"
    case identifier = "UBIQUITOUS_STORE_IDENTIFIER"
    case noColor = "NO_COLOR"
    case terminal = "TERM"
    case dataDirectories = "XDG_DATA_DIRS"

    /// The variable's value; `nil` if it is unset or empty.
    var value: String? { Self.value(of: rawValue) }

    /// Returns the value of any variable; `nil` if it is unset or empty.
    static func value(of name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
}
