// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus

/// What is on its way to all users, and how many of them rest.
///
/// The bus has one bound for the service: with 127 MiB unread it stops reading from the service, which stops every client.
@BusActor
final class SharePool {
    /// What all users have on their way, but for trifles.
    private var unread = 0
    /// Users whose calls took long a moment ago.
    var restingUsers = 0

    /// Users may leave so many bytes unread together.
    private static let limit = SharedLimit(64 << 20, reserve: 16 << 20)

    nonisolated init() {}

    /// Whether a user may have so many bytes more on its way.
    /// - Parameter own: what the user has already.
    func hasRoom(for bytes: Int, besides own: Int) -> Bool {
        Self.limit.allows(own + bytes, beside: unread - own)
    }

    func count(_ bytes: Int) { unread += bytes }
}
