// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The names of what is in a directory.
package enum DirectoryListing {
    /// All names but `.` and `..`, in no order; none where the directory can't be read.
    package static func names(in directory: String) -> [String] {
        guard let stream = opendir(directory) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }
}
