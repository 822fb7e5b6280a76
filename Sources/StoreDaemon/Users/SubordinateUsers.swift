// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// The user ids that `/etc/subuid` grants to users in addition to their own, by the thousand: subuid(5).
///
/// With them, one user could be many on the bus, each with a user's budgets. Only programs in containers run under
/// them, and the service refuses these because they have a root directory of their own.
@BusActor
final class SubordinateUsers {
    private let users: UserLookup
    private var file: StampedFile
    private var ranges: [ClosedRange<UInt32>] = []

    init(_ path: String = "/etc/subuid", users: UserLookup = .shared) {
        (file, self.users) = (StampedFile(path), users)
    }

    /// Returns the first id of the range that an id is in; `nil` if it is in none, or is a user's anyway: directory
    /// services may not know the ranges. An id that can't be looked up within a moment counts as a user's.
    func range(of uid: UInt32) -> UInt32? {
        if let text = file.news() { ranges = Self.ranges(in: text) }
        guard let range = ranges.first(where: { $0.contains(uid) }), users.entry(.uid(uid)) == .known(nil) else {
            return nil
        }
        return range.lowerBound
    }

    /// Returns the ranges in a file's text. Invalid lines are ignored.
    nonisolated static func ranges(in text: String) -> [ClosedRange<UInt32>] {
        text.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: ":", omittingEmptySubsequences: false)
            guard fields.count == 3, let first = UInt32(fields[1]), first > 0, let count = UInt32(fields[2]), count > 0
            else { return nil }
            let (last, isTooLarge) = first.addingReportingOverflow(count - 1)
            return first...(isTooLarge ? .max : last)
        }
    }
}
