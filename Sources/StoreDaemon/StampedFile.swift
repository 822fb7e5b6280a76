// SPDX-License-Identifier: Apache-2.0

internal import Files

/// A small text file of the system, read again when it has changed.
struct StampedFile {
    private let path: String
    private var stamp: FileStamp?

    /// Enough for any file with users that is edited by hand; sites with more users have a directory service.
    private static let mostBytes = 8 << 20

    init(_ path: String) { self.path = path }

    /// Returns the file's text, empty if it is missing, unreadable or too large; `nil` if it is unchanged since the
    /// last call.
    mutating func news() -> String? {
        let present = FileStamp(path)
        if stamp == present { return nil }
        stamp = present
        return Files.text(of: path, atMost: Self.mostBytes) ?? ""
    }
}
