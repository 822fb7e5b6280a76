// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus

/// The totals of a user's clients: bytes on their way, waiting calls, subscriptions and time.
@BusActor
final class UserShare {
    /// The bounds for the user.
    var bounds: UserBounds
    /// The clients with more than a trifle in flight, by the identity of their deliveries.
    var counted: [ObjectIdentifier: Delivery] = [:]
    /// The clients with waiting work, by the identity of their deliveries.
    var waiting: [ObjectIdentifier: Delivery] = [:]
    /// The waiting calls that expect no reply.
    var unansweredCalls = UnansweredCalls()
    /// The number of subscriptions of all of the user's clients.
    var subscriptions = SubscriptionCount()
    /// The number of the user's clients that hold something.
    var presentClients = 0
    /// The rest of the user's calls.
    let rest: LongCallPause
    /// Whether the user's waiting calls go on once it is the user's turn.
    var isInLine = false
    /// Whether the user's calls wait for their turn, or for the end of the rest.
    var mustWait: Bool { isInLine || rest.isUnderWay }
    /// The calls that the user has made since the last question to the bus.
    var calls = Turns.Count()

    /// The tokens of calls that expect no reply, in KiB: 8 MiB at once, and 2 MiB per second.
    private var unanswered = TokenBucket(capacity: 8 << 10, interval: 500)

    /// The subscriptions with changes to send. A change may have thousands of keys, and hundreds of subscribers.
    private(set) lazy var signals = PacedQueue<StoreSubscription>(
        burst: 256, cost: { $0.cost }, noting: { [weak self] in self?.note($0) }
    ) { $0.sendDue() }
    private let pool: SharePool
    /// The bytes on their way to the user's clients, except trifles.
    private var unread = 0
    /// The bytes that the user's waiting calls hold.
    private var held = 0
    /// The number of the user's waiting refusals.
    private var refusals = 0
    /// How many of the user's calls have waited.
    private var arrivals: UInt64 = 0
    /// The bytes of changes of which the user's subscribers are still to be told.
    private var changes = 0
    /// Whether an unmeasured call waits.
    private(set) var holdsLarge = false
    private var retry: EventSource?
    /// The number of deliveries that refer to this.
    private var users = 0
    /// Called when no client refers to this any more and the user doesn't rest.
    var whenUnused: (() -> Void)?

    /// The most bytes on their way to a user's clients together. It is less when other users have many.
    static let limit = 24 << 20
    /// The most bytes that a user's waiting calls may hold together.
    static let heldLimit = 8 << 20
    /// The most refusals of a user that may wait.
    static let refusalLimit = 512
    /// How far refusals may exceed the limit.
    private static let reserve = 1 << 20

    init(_ bounds: UserBounds, of pool: SharePool) {
        self.bounds = bounds
        self.pool = pool
        rest = LongCallPause(of: pool)
        rest.whenOver = { [unowned self] in
            wake()
            endIfUnused()
        }
    }

    // MARK: Clients

    /// Counts a new client of the user.
    func join() { users += 1 }

    /// Counts a client less. Disconnecting all clients doesn't end the user's rest.
    func leave() {
        users -= 1
        endIfUnused()
    }

    private func endIfUnused() {
        if users == 0, !rest.isUnderWay { whenUnused?() }
    }

    // MARK: Bytes

    /// Whether the user's clients may have more bytes on their way.
    func hasRoom(for bytes: Int) -> Bool {
        unread + bytes <= Self.limit && pool.hasRoom(for: bytes, besides: unread)
    }

    /// Whether there is room for refusals.
    var canRefuse: Bool { hasRoom(for: -Self.reserve) }

    /// Counts bytes that were sent, or read if negative.
    func count(_ bytes: Int) {
        unread += bytes
        pool.count(bytes)
    }

    /// Whether there is room for what a waiting call holds.
    func hasRoom(toHold size: HeldSize) -> Bool {
        switch size {
        case .bytes(let bytes): held + bytes <= Self.heldLimit && pool.mayHold(bytes, besides: held)
        case .large: mayHoldLarge
        case .refusal: refusals < Self.refusalLimit && pool.refusals < SharePool.refusalLimit
        }
    }

    /// Counts what a waiting call holds.
    func hold(_ size: HeldSize) throws(BusError) {
        let hasRoom = hasRoom(toHold: size)
        switch size {
        case .bytes(let bytes):
            guard hasRoom else {
                throw .limitsExceeded("The user's unanswered calls take \(held) bytes. Wait for their answers.")
            }
            held += bytes
            pool.held += bytes
        case .large:
            guard hasRoom else {
                throw .limitsExceeded("The user's unanswered calls have too many arguments. Wait for their answers.")
            }
            holdsLarge = true
            pool.heldLarge += 1
        case .refusal:
            guard hasRoom else {
                throw .limitsExceeded("The user has too many calls that are not answered yet.")
            }
            refusals += 1
            pool.refusals += 1
        }
    }

    /// Returns the number of a call that begins to wait.
    func nextArrival() -> UInt64 {
        arrivals += 1
        return arrivals
    }

    /// Counts what a call held that no longer waits.
    func release(_ size: HeldSize) {
        switch size {
        case .bytes(let bytes):
            held -= bytes
            pool.held -= bytes
        case .large:
            holdsLarge = false
            pool.heldLarge -= 1
        case .refusal:
            refusals -= 1
            pool.refusals -= 1
        }
    }

    /// Whether a call may wait whose arguments take too long to measure.
    var mayHoldLarge: Bool { !holdsLarge && pool.mayHoldLarge }

    /// Whether there is room for a call that expects no reply.
    func hasRoomForUnanswered(_ now: UInt64) -> Bool { unanswered.nextToken(now) == now }

    /// Counts a call that expects no reply.
    func countUnanswered(_ bytes: Int, _ now: UInt64) { unanswered.take(now, UInt64(clamping: bytes >> 10)) }

    // MARK: Changes

    /// Whether more bytes of changes may wait for the user's subscribers.
    func mayKeepChanges(_ bytes: Int) -> Bool { pool.mayKeepChanges(bytes, besides: changes) }

    /// Counts bytes of changes that wait, or no longer wait if negative.
    func countChanges(_ bytes: Int) {
        changes += bytes
        pool.changes += bytes
    }

    // MARK: Time

    /// The time of short calls in a burst: calls that follow each other without a pause.
    private var burst: (number: UInt64, time: UInt64) = (0, 0)

    /// Counts the time of a call. Short ones count only in a burst, in which others wait behind them. One program that
    /// calls, waits and calls again delays nobody.
    func note(_ microseconds: UInt64, inBurst number: UInt64) {
        calls.time += microseconds
        if microseconds >= LongCallPause.shortest { return rest.note(microseconds) }
        if burst.number != number { burst = (number, 0) }
        burst.time += microseconds
        guard burst.time >= LongCallPause.shortest else { return }
        rest.note(burst.time)
        burst.time = 0
    }

    /// Counts time that was spent outside of a call.
    private func note(_ time: WorkTime) { rest.note(time.taken(ifAtLeast: LongCallPause.shortest)) }

    // MARK: Asking

    /// Continues the user's waiting work until a time. What is left goes on with the next turn.
    func takeTurn(until end: UInt64) {
        var end = end
        // The order is random, so that each client gets its turn.
        for delivery in waiting.values.shuffled() where EventLoop.now < end { delivery.proceed(until: &end) }
        wake()
    }

    /// Puts the user in line for a turn if there is room for some of the waiting work now.
    func wake() {
        if waiting.values.contains(where: \.canProceed) { pool.turns.add(self) }
        askLater()
    }

    /// Finds out what the user's clients have read. Some may have read everything long ago.
    func askAll() {
        // The order is random, so that each client gets its turn.
        for delivery in counted.values.shuffled().prefix(Self.askedAtOnce) { delivery.ask() }
    }

    /// Asks again after a while if something waits for room.
    ///
    /// Nothing else may cause it: the clients that have not read may not call again, and those that wait have nothing
    /// unread.
    func askLater() {
        if retry != nil || !waiting.values.contains(where: \.waitsForOthers) { return }
        retry = EventLoop.shared.after(.milliseconds(100), accuracy: .milliseconds(20)) { [weak self] in
            guard let self else { return }
            retry = nil
            // The pool is shared, so another user may have made room.
            wake()
            if retry != nil { askAll() }
        }
    }

    private static let askedAtOnce = 32
}
