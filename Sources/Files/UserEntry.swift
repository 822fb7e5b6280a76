// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A user of this machine.
package struct UserEntry: Hashable, Sendable {
    package let name: String
    package let uid: UInt32

    /// What a user is looked up by.
    package enum Key: Hashable, Sendable {
        case name(String)
        case uid(UInt32)
    }

    /// What is known of a user.
    package enum Answer: Equatable, Sendable {
        case known(UserEntry)
        /// There is no such user. While a directory service is down, the system may say that of its users, too.
        case nobody
        /// The system has not answered yet, or can't say. Ask again later.
        case unknown
        /// The system was hardly asked, because other lookups have used up the time for them. Ask again soon.
        case busy
    }

    /// Makes an entry from its parts.
    package init(name: String, uid: UInt32) { (self.name, self.uid) = (name, uid) }

    /// Asks the system, which may take as long as a directory service does.
    package static func lookUp(_ key: Key) -> Answer {
        var entry = passwd()
        var result: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16 << 10)
        var code: Int32
        repeat {
            code =
                switch key {
                case .name(let name): getpwnam_r(name, &entry, &buffer, buffer.count, &result)
                case .uid(let uid): getpwuid_r(uid, &entry, &buffer, buffer.count, &result)
                }
            if code == ERANGE { buffer = [CChar](repeating: 0, count: 4 * buffer.count) }
        } while code == ERANGE && buffer.count <= 1 << 20
        if code == 0, result != nil {
            return .known(UserEntry(name: String(cString: entry.pw_name), uid: entry.pw_uid))
        }
        return absenceCodes.contains(code) ? .nobody : .unknown
    }

    /// What getpwnam_r(3) and getgrnam_r(3) return, according to their man pages, for users and groups that don't exist.
    package static let absenceCodes: Set = [0, ENOENT, ESRCH, EBADF, EPERM]
}
