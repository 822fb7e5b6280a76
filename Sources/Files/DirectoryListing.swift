// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Lists directories.
package enum DirectoryListing {
    /// Returns all names except `.` and `..`, in no order; none if the directory can't be read.
    package static func names(in directory: String) -> [String] { (try? list(directory)) ?? [] }

    /// Returns all names except `.` and `..`, in no order; none if there is no such directory.
    /// - Throws: the reason why the directory can't be read.
    package static func list(_ directory: String) throws(SystemError) -> [String] {
        guard let stream = opendir(directory) else {
            if errno == ENOENT || errno == ENOTDIR { return [] }
            throw SystemError()
        }
        defer { closedir(stream) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else { break }
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        if errno != 0 { throw SystemError() }
        return names
    }
}
