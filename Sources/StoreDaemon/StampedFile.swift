// SPDX-License-Identifier: Apache-2.0

internal import Files

/// A small text file of the machine's, which is read when it has changed.
struct StampedFile {
    private let path: String
    private var stamp: FileStamp?

    /// Files of users that people write are smaller; more users than that are in a directory service.
    private static let mostBytes = 1 << 20

    init(_ path: String) { self.path = path }

    /// The file's text, empty if it is not there, can't be read or is too large; `nil` if it is as it was the last time.
    mutating func news() -> String? {
        let present = FileStamp(path)
        if stamp == present { return nil }
        stamp = present
        return Files.text(of: path, atMost: Self.mostBytes) ?? ""
    }
}
