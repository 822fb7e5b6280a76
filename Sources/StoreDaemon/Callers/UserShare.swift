// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus

/// What all clients of one user have together: bytes on their way, waiting calls, subscriptions and time.
@BusActor
final class UserShare {
    /// What the user's clients may have waiting.
    var bounds: UserBounds
    /// The clients that have more than a trifle on its way, by the identity of their deliveries.
    var counted: [ObjectIdentifier: Delivery] = [:]
    /// The clients for which something waits.
    var waiting: [ObjectIdentifier: Delivery] = [:]
    /// The subscriptions of all of the user's clients.
    var subscriptions = SubscriptionCount()
    /// How many of the user's clients hold something.
    var presentClients = 0
    /// How long calls that may take long wait.
    let rest: UserRest

    /// Calls that want no answer, in KiB: 8 MiB at once, and 2 MiB a second.
    private var unanswered = TokenBucket(capacity: 8 << 10, interval: 500)

    private let pool: SharePool
    private var unread = 0
    private var held = 0
    /// Whether a call waits that was not measured.
    private(set) var holdsLarge = false
    private var retry: EventSource?
    /// How many deliveries refer to this.
    private var users = 0
    /// Called when no client refers to this any more, and the user doesn't rest.
    var whenUnused: (() -> Void)?

    /// A user's clients may have so many bytes on their way together, and fewer when other users have much.
    static let limit = 24 << 20
    /// Calls of a user's clients that wait may have so many bytes together.
    static let heldLimit = 8 << 20
    /// Refusals may go beyond the limit by so much.
    private static let reserve = 1 << 20

    init(_ bounds: UserBounds, of pool: SharePool) {
        self.bounds = bounds
        self.pool = pool
        rest = UserRest(of: pool)
        rest.whenOver = { [unowned self] in
            wake()
            endIfUnused()
        }
    }

    // MARK: Clients

    /// A client of the user is there.
    func join() { users += 1 }

    /// A client is forgotten. A user whose clients all leave has not rested meanwhile.
    func leave() {
        users -= 1
        endIfUnused()
    }

    private func endIfUnused() {
        if users == 0, !rest.isUnderWay { whenUnused?() }
    }

    // MARK: Bytes

    /// Whether the user's clients may have so many bytes more on their way.
    func hasRoom(for bytes: Int) -> Bool {
        unread + bytes <= Self.limit && pool.hasRoom(for: bytes, besides: unread)
    }

    /// Whether the user's clients may still be told that there is no room.
    var canRefuse: Bool { hasRoom(for: -Self.reserve) }

    /// Counts bytes that were sent, or read if they are negative.
    func count(_ bytes: Int) {
        unread += bytes
        pool.count(bytes)
    }

    /// Counts what a waiting call holds.
    func hold(_ size: HeldSize) throws(BusError) {
        switch size {
        case .bytes(let bytes):
            guard held + bytes <= Self.heldLimit, pool.mayHold(bytes, besides: held) else {
                throw .limitsExceeded("The user's calls that are not answered yet have \(held) bytes.")
            }
            held += bytes
            pool.held += bytes
        case .large:
            guard mayHoldLarge else {
                throw .limitsExceeded("The user's calls that are not answered yet have too many arguments.")
            }
            holdsLarge = true
            pool.heldLarge += 1
        }
    }

    /// Counts what a call held that waits no more.
    func release(_ size: HeldSize) {
        switch size {
        case .bytes(let bytes):
            held -= bytes
            pool.held -= bytes
        case .large:
            holdsLarge = false
            pool.heldLarge -= 1
        }
    }

    /// Whether a call may wait whose arguments take too long to be measured.
    var mayHoldLarge: Bool { !holdsLarge && pool.heldLarge < SharePool.largeLimit }

    /// Whether a call that wants no answer may come.
    func hasRoomForUnanswered(_ now: UInt64) -> Bool { unanswered.nextToken(now) == now }

    /// Counts a call that wants no answer.
    func countUnanswered(_ bytes: Int, _ now: UInt64) { unanswered.take(now, UInt64(clamping: bytes >> 10)) }

    // MARK: Asking

    /// Goes on with what waits for the user's clients, as far as there is room now.
    func wake() {
        for delivery in Array(waiting.values) { delivery.proceed() }
        askLater()
    }

    /// Finds out what the user's clients have read: some of them may have read everything long ago.
    func askAll() {
        // Dictionaries have no order, so that each gets its turn.
        for delivery in counted.values.shuffled().prefix(Self.askedAtOnce) { delivery.ask() }
    }

    /// Asks again after a while if something waits for room.
    ///
    /// Nothing else may happen until then: the clients that have something unread may not call any more, and those that
    /// wait have nothing that is unread.
    func askLater() {
        if retry != nil || !waiting.values.contains(where: \.waitsForOthers) { return }
        retry = EventLoop.shared.after(.milliseconds(100), accuracy: .milliseconds(20)) { [weak self] in
            guard let self else { return }
            retry = nil
            // Another user may have made room: the pool is shared.
            wake()
            if retry != nil { askAll() }
        }
    }

    private static let askedAtOnce = 32
}
