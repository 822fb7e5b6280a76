// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Files
internal import Glibc

/// The file in a user's data that names the machine and the user of whom a backup was made.
///
/// A backup that is restored to that user on that machine continues as the same device. Otherwise it becomes a device
/// of its own, because the first may still be in use.
enum MachineRecord {
    private static let fileName = "machine"
    /// Tells this use of the machine's identifier from others: machine-id(5) asks programs not to reveal the identifier.
    private static let use = sd_id128_t(qwords: (0x7a4b_e852_0c93_1d6f, 0x15bc_278e_60d9_31a4))

    /// Returns this machine, in 32 hexadecimal digits, and a user; `nil` if the machine has no identifier, as in some
    /// containers.
    private static func text(_ uid: UInt32) -> String? {
        var identifier = sd_id128_t()
        guard sd_id128_get_machine_app_specific(use, &identifier) >= 0 else { return nil }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 33) { digits in
            digits.baseAddress.map { String(cString: sd_id128_to_string(identifier, $0)) + " \(uid)\n" }
        }
    }

    /// Writes the record into the copy of a user's data, unless the data was itself restored and not used since.
    static func write(in directory: String, uid: UInt32) throws(SystemError) {
        let path = "\(directory)/\(fileName)"
        guard let text = text(uid), access(path, F_OK) != 0 else { return }
        try Files.replace(path, with: Array(text.utf8), by: path + ".new")
    }

    /// Whether a user's data was restored from a backup of another machine or user.
    static func isForeign(in directory: String, uid: UInt32) -> Bool {
        guard let recorded = Files.text(of: "\(directory)/\(fileName)", atMost: 64), let text = text(uid) else {
            return false
        }
        return recorded != text
    }

    /// Removes the record of data that is in use here.
    static func remove(in directory: String) { unlink("\(directory)/\(fileName)") }
}
