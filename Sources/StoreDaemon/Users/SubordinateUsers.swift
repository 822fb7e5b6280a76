// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// The user ids that `/etc/subuid` grants to users beside their own, by the thousand: subuid(5).
///
/// Whoever has them can be as many users to the bus as there are, each with a user's budgets. Nobody's programs run under
/// them but what is in a container, which has a root of its own and is refused for that.
@BusActor
final class SubordinateUsers {
    private let users: UserLookup
    private var file: StampedFile
    private var ranges: [ClosedRange<UInt32>] = []

    init(_ path: String = "/etc/subuid", users: UserLookup = .shared) {
        (file, self.users) = (StampedFile(path), users)
    }

    /// The first id of the range that an id is in; `nil` if it is in none, or is a user's of the machine all the same: a
    /// directory service may know nothing of the ranges. Where it can't be told within a moment, it is taken for a user's.
    func range(of uid: UInt32) -> UInt32? {
        if let text = file.news() { ranges = Self.ranges(in: text) }
        guard let range = ranges.first(where: { $0.contains(uid) }), users.entry(.uid(uid)) == .known(nil) else {
            return nil
        }
        return range.lowerBound
    }

    /// The ranges of a file. A line that isn't one says nothing.
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
