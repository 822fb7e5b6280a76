// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The users of this machine.
enum LocalUser {
    /// Returns the uid of a user who is given by name or number.
    /// - Throws: ``Failure`` if there is no such user.
    static func uid(of user: String) throws -> UInt32 {
        if let uid = uid(named: user) { return uid }
        if let uid = uid(inDigits: user), name(of: uid) != nil { return uid }
        throw Failure(.usage, "There is no user \(Output.quoted(user)) on this machine.")
    }

    /// The failure of a caller whom this machine doesn't know; `nil` for others. The bus closes their connections.
    static var unknown: Failure? {
        let uid = geteuid()
        if name(of: uid) != nil { return nil }
        return Failure(
            .unreachable, "The bus serves only users that this machine knows, and it knows no user \(uid).",
            advice: "Add the user to /etc/passwd, or run this as another user.")
    }

    /// Returns the uid that a word is, as "id -u" prints it: without a sign and leading zeros. `nil` if it is none.
    static func uid(inDigits word: String) -> UInt32? { UInt32(word).flatMap { "\($0)" == word ? $0 : nil } }

    static func uid(named name: String) -> UInt32? { getpwnam(name)?.pointee.pw_uid }

    static func name(of uid: UInt32) -> String? { getpwuid(uid).map { String(cString: $0.pointee.pw_name) } }
}
