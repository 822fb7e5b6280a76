// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The directory of the system's trusted certificates: one file for each, under a name by which OpenSSL finds it.
enum Authorities {
    static let system = "/etc/ssl/certs"

    /// Whether a directory has such names: eight digits of a hash, a dot and a number (`c_rehash`).
    static func areHashed(in directory: String) -> Bool {
        guard let stream = opendir(directory) else { return false }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name.utf8.count == 10, name.hasSuffix(".0"), name.dropLast(2).allSatisfy(\.isHexDigit) { return true }
        }
        return false
    }
}
