// SPDX-License-Identifier: Apache-2.0

/// Why a line of a file of settings doesn't hold.
public struct SettingsError: Error, Equatable, CustomStringConvertible {
    /// The file; empty where there is only one.
    public var file = ""
    /// The line, from 1.
    public let line: Int
    /// What is wrong with it, and what would be right.
    public let reason: String

    /// The file, the line and the reason.
    public var description: String { (file.isEmpty ? "" : "\(file), ") + "line \(line): \(reason)" }
}
