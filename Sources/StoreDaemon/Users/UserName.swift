// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The names of the machine's users.
enum UserName {
    /// The user's name, if it can be looked up.
    static func name(of uid: UInt32) -> String? {
        var entry = passwd()
        var result: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16 << 10)
        guard getpwuid_r(uid, &entry, &buffer, buffer.count, &result) == 0, result != nil else { return nil }
        return String(cString: entry.pw_name)
    }

    /// The number of the user of a name, if it can be looked up.
    static func uid(of name: String) -> UInt32? {
        var entry = passwd()
        var result: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16 << 10)
        guard getpwnam_r(name, &entry, &buffer, buffer.count, &result) == 0, result != nil else { return nil }
        return entry.pw_uid
    }

    /// The user in a sentence, by name and number.
    static func text(of uid: UInt32) -> String { text(name(of: uid), uid) }

    /// A user in a sentence.
    static func text(_ name: String?, _ uid: UInt32) -> String { name.map { "\($0) (\(uid))" } ?? "the user \(uid)" }
}
