// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus

/// The totals of all users: bytes on their way, waiting calls, and users that rest.
///
/// The bus bounds the service: with 127 MiB unread it stops reading from the service, which stops all clients.
@BusActor
final class SharePool {
    /// The bytes on their way to all users, except trifles.
    private var unread = 0
    /// What all users share with everything else that takes memory.
    private let memory: ServiceMemory
    /// The bytes that the waiting calls of all users hold.
    var held = 0 { didSet { memory.count(held - oldValue) } }
    /// The number of waiting calls that were not measured.
    var heldLarge = 0 { didSet { memory.count((heldLarge - oldValue) * Self.largestCall) } }
    /// The number of waiting refusals.
    var refusals = 0 { didSet { memory.count((refusals - oldValue) * Self.refusalSize) } }
    /// The bytes of changes of which subscribers are still to be told.
    var changes = 0 { didSet { memory.count(changes - oldValue) } }
    /// Whose waiting calls go on.
    let turns: Turns
    /// The number of users whose calls took long a moment ago.
    var restingUsers = 0
    /// Whether the service ends, so that nobody rests any more.
    var isEnding = false

    /// The most bytes that all users together may leave unread.
    private static let limit = SharedLimit(64 << 20, reserve: 16 << 20)

    /// The most bytes that all waiting calls together may hold.
    private static let heldLimit = SharedLimit(32 << 20, reserve: 16 << 20)
    /// The most bytes of changes of which all subscribers together are still to be told.
    private static let changesLimit = SharedLimit(16 << 20, reserve: 8 << 20)
    /// The most unmeasured calls that may wait.
    static let largeLimit = 2
    /// As much as the bus allows a call, in bytes.
    static let largestCall = 32 << 20
    /// The most refusals that may wait.
    static let refusalLimit = 4 << 10
    /// About the bytes of one.
    private static let refusalSize = 3 << 10

    nonisolated init(_ turns: Turns = Turns(), within memory: ServiceMemory = ServiceMemory()) {
        (self.turns, self.memory) = (turns, memory)
    }

    /// Whether a user's waiting calls may hold more bytes.
    /// - Parameter own: the bytes that they hold already.
    func mayHold(_ bytes: Int, besides own: Int) -> Bool {
        Self.heldLimit.allows(own + bytes, beside: held - own) && memory.allows(bytes, besides: own)
    }

    /// Whether one more call may wait that was not measured.
    var mayHoldLarge: Bool { heldLarge < Self.largeLimit && memory.allows(Self.largestCall, besides: 0) }

    /// Whether more bytes of changes may wait for a user's subscribers.
    /// - Parameter own: the bytes that wait for them already.
    func mayKeepChanges(_ bytes: Int, besides own: Int) -> Bool {
        Self.changesLimit.allows(own + bytes, beside: changes - own) && memory.allows(bytes, besides: own)
    }

    /// Whether a user may have more bytes on their way.
    /// - Parameter own: the user's bytes on their way already.
    func hasRoom(for bytes: Int, besides own: Int) -> Bool {
        Self.limit.allows(own + bytes, beside: unread - own)
    }

    func count(_ bytes: Int) { unread += bytes }
}

/// What a waiting call holds.
enum HeldSize: Equatable {
    case bytes(Int)
    /// As much as a message may have. The call was not measured, which would take as long as reading it.
    case large
    /// Hardly anything, because the call will be refused.
    case refusal
}
