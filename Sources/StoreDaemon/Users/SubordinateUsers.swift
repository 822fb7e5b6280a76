// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import SDBus

/// The user ids that `/etc/subuid` grants to users in addition to their own, by the thousand: subuid(5).
///
/// With them, one user could be many on the bus, each with a user's budgets. Only programs in containers run under
/// them, and the service refuses these because they have a root directory of their own.
@BusActor
final class SubordinateUsers {
    private let users: UserLookup
    private let hasData: (UInt32) -> Bool
    private var file: StampedFile
    private var ranges: [ClosedRange<UInt32>] = []

    /// - Parameters:
    ///   - users: looks up names. It is not the one for users: a person has thousands of these ids, and could use up all
    ///     its time.
    ///   - hasData: whether an id has data already.
    init(_ path: String = "/etc/subuid", users: UserLookup = UserLookup(), hasData: @escaping (UInt32) -> Bool) {
        (file, self.users, self.hasData) = (StampedFile(path), users, hasData)
    }

    /// Returns the first id of the range that an id is in; `nil` if it is in none, or is a user's anyway: directory
    /// services may not know the ranges. An id that can't be looked up within a moment is a user's if it has data.
    func range(of uid: UInt32) -> UInt32? {
        if let text = file.news() { ranges = Self.ranges(in: text) }
        guard let range = ranges.first(where: { $0.contains(uid) }) else { return nil }
        switch users.entry(.uid(uid)) {
        case .known: return nil
        case .unknown where hasData(uid), .busy where hasData(uid): return nil
        case .nobody, .unknown, .busy: return range.lowerBound
        }
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
