// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc

/// Keeps ``NotifiedCauses`` in the user's state directory.
struct NotifiedFile {
    private let directory: String
    private var path: String { directory + "/notified" }

    /// - Parameter environment: returns a variable's value; `nil` if it is unset or empty.
    init(_ environment: (String) -> String?) {
        // Without a home directory, the file can't be written.
        directory = (BaseDirectory.state.path(in: environment) ?? "/nonexistent") + "/ubiquitous-store"
    }

    /// Reads the causes; none if the file can't be read.
    func read() -> NotifiedCauses { NotifiedCauses(Files.text(of: path, atMost: 1 << 16) ?? "") }

    /// Replaces the file.
    /// - Throws: `SystemError`.
    func write(_ causes: NotifiedCauses) throws {
        try Files.makeDirectories(directory)
        try Files.replace(path, with: Array(causes.text.utf8), by: path + ".new")
    }
}
