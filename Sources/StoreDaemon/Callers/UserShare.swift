// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// What is on its way to all clients of one user, and what their waiting calls hold.
@BusActor
final class UserShare {
    /// What the user's clients may have waiting.
    var bounds: UserBounds
    /// The clients that have more than a trifle on its way, by the identity of their deliveries.
    var counted: [ObjectIdentifier: Delivery] = [:]
    /// The clients for which something waits.
    var waiting: [ObjectIdentifier: Delivery] = [:]

    private let pool: SharePool
    private var unread = 0
    private var held = 0
    private var retry: EventSource?
    /// Ends the rest.
    private var rest: EventSource?
    /// Called after a rest.
    var whenRested: (() -> Void)?

    /// A user's clients may have so many bytes on their way together, and fewer when several users have much.
    static let limit = 24 << 20
    /// Calls of a user's clients that wait may have so many bytes together.
    static let heldLimit = 8 << 20
    /// Refusals may go beyond the limit by so much.
    private static let reserve = 1 << 20

    init(_ bounds: UserBounds, of pool: SharePool) {
        self.bounds = bounds
        self.pool = pool
    }

    private var limit: Int { min(Self.limit, pool.limit) }

    var hasRoom: Bool { unread < limit }
    var canRefuse: Bool { unread < limit + Self.reserve }

    /// Counts bytes that were sent, or read if they are negative.
    func count(_ bytes: Int) {
        let before = unread
        unread += bytes
        pool.moved(from: before, to: unread)
    }

    /// Counts what a waiting call holds.
    func hold(_ bytes: Int) throws(BusError) {
        guard held + bytes <= Self.heldLimit else {
            throw .limitsExceeded("The user's calls that are not answered yet have \(held) bytes")
        }
        held += bytes
    }

    func release(_ bytes: Int) { held -= bytes }

    // MARK: Time

    /// Whether the user's calls that may take long wait, since one has.
    var isResting: Bool { rest != nil }

    /// Counts what a call took of the thread that answers everybody's. After a long one the user's next ones wait several
    /// times as long, and longer the more users do that, so that all of them together leave most of the time to others.
    func noteTime(_ microseconds: UInt64) {
        guard microseconds >= Self.long else { return }
        if rest == nil { pool.restingUsers += 1 }
        let time = min(microseconds, Self.longestCounted) * 4 * UInt64(pool.restingUsers)
        rest = EventLoop.shared.after(.microseconds(Int64(time)), accuracy: .milliseconds(1)) { [weak self] in
            self?.endRest()
        }
    }

    private func endRest() {
        rest = nil
        pool.restingUsers -= 1
        wake()
        // What still waits does so for its user's clients to read.
        if !waiting.isEmpty { askAll() }
        whenRested?()
    }

    /// Others hardly notice what takes less.
    private static let long: UInt64 = 20_000
    private static let longestCounted: UInt64 = 1_000_000

    // MARK: Asking

    /// Goes on with what waits for the user's clients, as far as there is room now.
    func wake() {
        for delivery in Array(waiting.values) where hasRoom { delivery.proceed() }
        askLater()
    }

    /// Finds out what the user's clients have read: some of them may have read everything long ago.
    func askAll() {
        // Dictionaries have no order, so that each gets its turn.
        for delivery in counted.values.shuffled().prefix(Self.askedAtOnce) { delivery.ask() }
    }

    /// Asks again after a while if something waits for room and there is none.
    ///
    /// Nothing else may happen until then: the clients that have something unread may not call any more, and those that
    /// wait have nothing that is unread.
    func askLater() {
        if retry != nil || waiting.isEmpty || hasRoom { return }
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

/// What is on its way to all users. The bus has one bound for the service, so users who leave much unread divide it.
@BusActor
final class SharePool {
    /// Users that have more than this on its way.
    private var heavyUsers = 0
    /// Users whose calls took long a moment ago.
    fileprivate(set) var restingUsers = 0

    private static let limit = 64 << 20
    private static let heavy = 1 << 20

    nonisolated init() {}

    /// What each user may have on its way.
    var limit: Int { Self.limit / max(1, heavyUsers) }

    func moved(from before: Int, to after: Int) {
        if before < Self.heavy, after >= Self.heavy { heavyUsers += 1 }
        if before >= Self.heavy, after < Self.heavy { heavyUsers -= 1 }
    }
}
