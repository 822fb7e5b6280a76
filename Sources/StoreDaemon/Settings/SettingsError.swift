// SPDX-License-Identifier: Apache-2.0

/// Why a line of a file of settings doesn't apply.
package struct SettingsError: Error, Equatable, CustomStringConvertible {
    /// The file's path; empty if there is only one file.
    package var file = ""
    /// The line's number, from 1.
    package let line: Int
    /// What is wrong in the line, and what would be right.
    package let reason: String

    /// The file, the line and the reason.
    package var description: String { (file.isEmpty ? "" : "\(file), ") + "line \(line): \(reason)" }
}
