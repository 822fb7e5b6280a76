// SPDX-License-Identifier: Apache-2.0

/// The mounts that a process sees, from its file `mountinfo`: see proc_pid_mountinfo(5).
///
/// Unlike a call about a folder, reading this table never waits for a server that doesn't answer.
package struct MountTable: Sendable {
    private let mounts: [Mount]

    /// A file system at a place.
    package struct Mount: Sendable {
        /// The directory where it is.
        package let point: String
        /// Whether this process can only read it.
        package let isReadOnly: Bool
    }

    /// Reads the text of the file.
    package init(_ text: String) {
        mounts = text.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: " ")
            guard fields.count > 5 else { return nil }
            return Mount(
                point: Self.plain(fields[4]), isReadOnly: fields[5].split(separator: ",").contains("ro"))
        }
    }

    /// The mounts that this process sees now.
    package static var current: MountTable { MountTable(Files.text(of: "/proc/self/mountinfo", atMost: 4 << 20) ?? "") }

    /// Returns the mount that a path is on, which is the last one of the longest mount point. Symbolic links in the path
    /// are not followed.
    package func mount(of path: String) -> Mount? {
        let above = mounts.filter { $0.point == "/" || (path + "/").hasPrefix($0.point + "/") }
        let length = above.map(\.point.utf8.count).max()
        return above.last { $0.point.utf8.count == length }
    }

    /// Returns a field with its characters in place of their octal codes.
    private static func plain(_ field: Substring) -> String {
        let codes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        return codes.reduce(String(field)) { $0.replacing($1.0, with: $1.1) }
    }
}
