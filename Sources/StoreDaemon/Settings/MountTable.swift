// SPDX-License-Identifier: Apache-2.0

/// The mounts that a process sees, from its file `mountinfo`: see proc_pid_mountinfo(5).
///
/// Unlike a call about a folder, reading this table never waits for a server that doesn't answer.
package struct MountTable {
    private let mounts: [(point: String, isReadOnly: Bool)]

    /// Reads the text of the file.
    package init(_ text: String) {
        mounts = text.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: " ")
            guard fields.count > 5 else { return nil }
            return (Self.plain(fields[4]), fields[5].split(separator: ",").contains("ro"))
        }
    }

    /// Returns which folder roots are mounted so that this process can only read them, in sentences.
    package func problems(ofFolderRoots paths: [String]) -> [String] {
        paths.filter(isReadOnly).map {
            """
            FolderRoot=\($0) is read-only for the service, because of its unit's sandbox. Create the folder if it \
            doesn't exist, name it under ReadWritePaths= in a drop-in, as \
            /usr/share/doc/ubiquitous-store/examples/folder-root.conf does, and restart the service.
            """
        }
    }

    /// Whether the mount that a path is on, which is the last one of the longest mount point, is read-only.
    private func isReadOnly(_ path: String) -> Bool {
        let above = mounts.filter { $0.point == "/" || (path + "/").hasPrefix($0.point + "/") }
        let length = above.map(\.point.utf8.count).max()
        return above.last { $0.point.utf8.count == length }?.isReadOnly == true
    }

    /// Returns a field with its characters in place of their octal codes.
    private static func plain(_ field: Substring) -> String {
        let codes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        return codes.reduce(String(field)) { $0.replacing($1.0, with: $1.1) }
    }
}
