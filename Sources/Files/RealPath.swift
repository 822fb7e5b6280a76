// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Paths without symbolic links.
package enum RealPath {
    /// Returns the components of a path without links; of the path itself if it can't be resolved.
    package static func components(of path: String) -> [String] {
        guard let real = realpath(path, nil) else { return split(path) }
        defer { free(real) }
        return split(String(cString: real))
    }

    /// Splits a path by bytes, as the kernel does. Swift doesn't see a slash before a combining character.
    package static func split(_ path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
    }
}
