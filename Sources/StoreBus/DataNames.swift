// SPDX-License-Identifier: Apache-2.0

/// The names of users' data in the state directory, as `ListData` returns them.
package enum DataNames {
    /// The name of an empty file that marks data that a restore has set aside: what was restored, or what it replaced.
    package static let copyMark = "copy"

    /// The beginning of the name of a copy that `BackUp` makes in the state directory; a number follows.
    package static let backupPrefix = "backup."

    /// The name of the file in a backup that names the data that could not be copied, and why.
    package static let notCopied = "not-copied"

    /// The name of the file in a backup that says which uid a user's name had, if there is data in use of several uids
    /// under that name: a line `19000 ada` for each name.
    package static let namesakes = "namesakes"

    /// The most bytes of a user's name that is recorded in the user's data.
    package static let longestUserName = 256

    /// Returns the uid in the name of data, `u1000` or `u1000.ada.1763800000`; `nil` if the name has another form.
    package static func uid(inName name: String) -> UInt32? {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        guard let uid = UInt32(parts[0].dropFirst()), parts[0] == "u\(uid)", parts.count != 2 else { return nil }
        return uid
    }

    /// Returns the name for data that is set aside: `u1000.ada.1763800000`, with the seconds since 1970 at the end.
    ///
    /// It is later than all of the user's names, even if the clock is behind: the oldest copies are removed first.
    ///
    /// - Parameters:
    ///   - seconds: the present time, in seconds since 1970.
    ///   - names: the existing names.
    package static func setAside(
        uid: UInt32, user: String, seconds: UInt64, besides names: some Sequence<String>
    ) -> String {
        // Some directory services separate a domain and a name with a slash.
        let prefix = "u\(uid).\(user.replacing("/", with: "_"))."
        let times = names.compactMap { $0.hasPrefix(prefix) ? self.seconds($0.dropFirst(prefix.count)) : nil }
        return "\(prefix)\(max(seconds, times.max().map { $0 + 1 } ?? 0))"
    }

    /// Reads the seconds at the end of a name; `nil` if they are no number below 2^40, which no clock shows.
    package static func seconds(_ text: some StringProtocol) -> UInt64? {
        UInt64(text).flatMap { $0 < 1 << 40 ? $0 : nil }
    }
}
