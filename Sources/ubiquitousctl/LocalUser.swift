// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The users of this machine.
enum LocalUser {
    /// Returns the uid of a user who is given by name or number.
    /// - Throws: ``Failure`` if there is no such user.
    static func uid(of user: String) throws -> UInt32 {
        if let uid = uid(named: user) { return uid }
        if let uid = UInt32(user), name(of: uid) != nil { return uid }
        throw Failure(.usage, "There is no user \(Output.quoted(user)) on this machine.")
    }

    static func uid(named name: String) -> UInt32? { getpwnam(name)?.pointee.pw_uid }

    static func name(of uid: UInt32) -> String? { getpwuid(uid).map { String(cString: $0.pointee.pw_name) } }
}
