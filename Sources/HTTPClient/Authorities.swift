// SPDX-License-Identifier: Apache-2.0

internal import EventLoop
internal import Glibc

/// The directory of the system's trusted certificates: one file for each, under a name by which OpenSSL finds it.
@BusActor
enum Authorities {
    nonisolated static let system = "/etc/ssl/certs"

    /// What was found in a directory, and the directory's state then.
    private static var found: [String: (state: [Int], areHashed: Bool)] = [:]

    /// Whether a directory has such names: eight digits of a hash, a dot and a number (`c_rehash`). The names are read
    /// again only after the directory has changed.
    static func areHashed(in directory: String) -> Bool {
        var status = stat()
        guard stat(directory, &status) == 0 else { return false }
        let state = [
            Int(bitPattern: UInt(status.st_dev)), Int(bitPattern: UInt(status.st_ino)), status.st_mtim.tv_sec,
            status.st_mtim.tv_nsec,
        ]
        if let found = found[directory], found.state == state { return found.areHashed }
        let areHashed = hasHashedNames(directory)
        found[directory] = (state, areHashed)
        return areHashed
    }

    private static func hasHashedNames(_ directory: String) -> Bool {
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
