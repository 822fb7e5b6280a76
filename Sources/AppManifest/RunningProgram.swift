// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The program that this process runs.
package enum RunningProgram {
    /// Its path according to the kernel, with links resolved; `nil` without `/proc`.
    package static var path: String? {
        let size = Int(PATH_MAX)
        var link = [CChar](repeating: 0, count: size)
        let count = readlink("/proc/self/exe", &link, size)
        if count <= 0 { return nil }
        let bytes = link.prefix(count).map { UInt8(bitPattern: $0) }
        return path(String(decoding: bytes, as: UTF8.self)) { access($0, F_OK) == 0 }
    }

    /// Returns a program's path without what the kernel adds once the file was removed, as by an update that replaces it
    /// (proc_pid_exe(5)).
    static func path(_ link: String, exists: (String) -> Bool) -> String {
        let mark = " (deleted)"
        return link.hasSuffix(mark) && !exists(link) ? String(link.dropLast(mark.count)) : link
    }
}
