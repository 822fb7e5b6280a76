// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// What is on its way to all users, and how many of them rest.
///
/// The bus has one bound for the service: at 127 MiB that nobody has read it stops reading the service, for everybody.
@BusActor
final class SharePool {
    /// What all users have on their way, but for trifles.
    private var unread = 0
    /// Users whose calls took long a moment ago.
    var restingUsers = 0

    /// Users may leave so many bytes unread together.
    private static let limit = 64 << 20
    /// Beyond the limit so many bytes are for users who have hardly anything on its way.
    private static let reserve = 16 << 20
    /// What each of them may have of the reserve.
    private static let floor = 1 << 20

    nonisolated init() {}

    /// Whether a user may have so many bytes more on its way: as long as it has at most half of what the others leave,
    /// all of them together stay within the limit, however many they are and in whichever order they come.
    /// - Parameter own: what the user has already.
    func hasRoom(for bytes: Int, besides own: Int) -> Bool {
        if own + bytes <= Self.floor, unread + bytes <= Self.limit + Self.reserve { return true }
        return own + bytes <= (Self.limit - (unread - own)) / 2
    }

    func count(_ bytes: Int) { unread += bytes }
}
