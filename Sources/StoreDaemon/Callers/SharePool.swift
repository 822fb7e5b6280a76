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
    /// What the calls of all users hold that wait.
    var held = 0
    /// How many of them wait that were not measured.
    var heldLarge = 0
    /// Users whose calls took long a moment ago.
    var restingUsers = 0

    /// Users may leave so many bytes unread together.
    private static let limit = SharedLimit(64 << 20, reserve: 16 << 20)

    /// Calls that wait may have so many bytes together.
    private static let heldLimit = SharedLimit(32 << 20, reserve: 16 << 20)
    /// So many calls may wait that were not measured: each may have what the bus lets through, 32 MiB.
    static let largeLimit = 2

    nonisolated init() {}

    /// Whether a user's calls that wait may have so many bytes more.
    /// - Parameter own: what they have already.
    func mayHold(_ bytes: Int, besides own: Int) -> Bool {
        Self.heldLimit.allows(own + bytes, beside: held - own)
    }

    /// Whether a user may have so many bytes more on its way.
    /// - Parameter own: what the user has already.
    func hasRoom(for bytes: Int, besides own: Int) -> Bool {
        Self.limit.allows(own + bytes, beside: unread - own)
    }

    func count(_ bytes: Int) { unread += bytes }
}

/// What a call takes that waits.
enum HeldSize: Equatable {
    case bytes(Int)
    /// As much as a message may have: it was not measured, which would take as long as to read it.
    case large
}
