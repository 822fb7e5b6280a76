// SPDX-License-Identifier: Apache-2.0

/// The names of users' data in the state directory, which `ListData` gives.
public enum DataNames {
    /// The name of an empty file in data that restoring has set aside: what it brought, or what it replaced.
    public static let copyMark = "copy"

    /// The name for data that is set aside: `u1000.ada.1763800000`, with the seconds since 1970 at the end.
    ///
    /// It is later than all that the user has, whatever the clock says: the oldest copies are removed first.
    ///
    /// - Parameters:
    ///   - seconds: the present, in seconds since 1970.
    ///   - names: those that there are.
    public static func setAside(
        uid: UInt32, user: String, seconds: UInt64, besides names: some Sequence<String>
    ) -> String {
        let prefix = "u\(uid).\(user)."
        let times = names.compactMap { $0.hasPrefix(prefix) ? UInt32($0.dropFirst(prefix.count)) : nil }
        return "\(prefix)\(max(seconds, times.max().map { UInt64($0) + 1 } ?? 0))"
    }
}
