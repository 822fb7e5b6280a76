// SPDX-License-Identifier: Apache-2.0

// How many bytes may be on their way to a client.
//
// What the bus holds for a client that doesn't read counts against the service, which sent it. If that is too much (127
// MiB on the system bus), the bus reads nothing more from the service, which stops all clients. So all sent bytes are
// counted, by client and by user, whether a handler or libsystemd sent them. Above half of a client's limit, the
// service asks the bus how much it really holds. Above the limit, the client's further calls and signals wait here
// until the bus holds less. A user's clients share a budget (see UserShare): once it is spent, answers that may be
// large wait for any of them to read.
//
// Both buses report what they hold (BusAccounting). Otherwise the service pings the client: a client library answers by
// itself once it has read what came before, unless it blocks in a call of its own.

internal import SDBus
internal import StoreBus

/// The bytes on their way to one client, and the work that waits for it to read.
@BusActor
final class Delivery {
    private let connection: BusConnection
    private let name: String
    let share: UserShare
    /// Called after waiting work was done.
    private let settle: () -> Void

    /// The bytes on their way to the client, as far as is known.
    private var unread = 0
    /// Whether these count against the user.
    private var isCounted = false
    private var waiting = WaitingLine()
    /// The number of waiting calls that expect a reply.
    private var waitingCalls = 0
    /// The question to the bus since which a call has last passed: see ``passesOnce(since:)``.
    private var lastQuestion: UInt64 = 0
    /// Whether the bus was asked how much the client has not read.
    private var isAsking = false
    /// Asks again.
    private var retry: EventSource?
    /// How long to wait before asking again.
    private var patience = Delivery.shortestPatience

    /// The most bytes that may be on their way to a client.
    static let limit = 4 << 20
    /// How many bytes a client may leave unread without being counted against its user.
    static let trifle = 16 << 10
    /// How far refusals may exceed a limit. Beyond that, calls get no answer at all.
    private static let reserve = 64 << 10
    private static let shortestPatience = Duration.milliseconds(20)

    init(to name: String, _ share: UserShare, on connection: BusConnection, settle: @escaping () -> Void) {
        self.name = name
        self.share = share
        self.connection = connection
        self.settle = settle
        share.join()
    }

    isolated deinit { share.leave() }

    /// Whether bytes can be sent now. If not, the caller waits.
    ///
    /// - Parameter takesLong: whether they have to wait while their user's calls rest.
    func hasRoom(for bytes: Int, takingLong takesLong: Bool = false) -> Bool {
        waiting.isEmpty && fits(bytes, takesLong)
    }

    /// Lets one call that can't wait pass after each question to the bus (``Turns/question``).
    /// - Returns: whether none has passed since this one.
    func passesOnce(since question: UInt64) -> Bool {
        defer { lastQuestion = question }
        return lastQuestion != question
    }

    /// Whether there is room for the answer of a call that was admitted already.
    func fits(_ bytes: Int) -> Bool { fits(bytes, false) }

    private func fits(_ bytes: Int, _ takesLong: Bool) -> Bool {
        unread < Self.limit && isLittle(bytes, or: share.hasRoom(for: bytes)) && !(takesLong && share.rest.isUnderWay)
    }

    private func isLittle(_ bytes: Int, or hasRoom: @autoclosure () -> Bool) -> Bool {
        unread + bytes <= Self.trifle || hasRoom()
    }

    /// Whether the next work waits for what the user's other clients, or other users, have not read.
    var waitsForOthers: Bool {
        guard let next = waiting.first, unread < Self.limit else { return false }
        return !isLittle(next.bytes, or: share.hasRoom(for: next.bytes))
    }

    /// Whether there is room for a refusal.
    var canRefuse: Bool { unread < Self.limit + Self.reserve && share.canRefuse }

    /// Does a piece of work once the client, or another one of its user, has read.
    ///
    /// The number of calls that expect no reply, and of those that wait for their user's turn, is bounded by what they
    /// hold.
    /// - Parameter isNext: whether it was admitted already, so that what waits came after it.
    func wait(_ work: WaitingWork, isNext: Bool = false) throws(BusError) {
        if work.isCall, !share.isInLine, waitingCalls >= share.bounds.waitingCalls {
            throw .limitsExceeded(
                "The connection doesn't read its replies, and \(waitingCalls) of its calls wait. Read the replies.")
        }
        if let held = work.held { try share.hold(held) }
        if work.isCall { waitingCalls += 1 }
        var work = work
        work.arrival = isNext ? 0 : share.nextArrival()
        share.unansweredCalls.add(work, self)
        add(work, isNext: isNext)
    }

    /// Sends a signal once there is room. A subscription has only one that waits, so no other bound is needed.
    /// - Parameter isNext: whether it has waited already, so that what waits came after it.
    func wait(toTell subscription: AnyObject, bytes: Int, isNext: Bool = false, _ work: @escaping () -> Void) {
        add(
            WaitingWork(bytes: bytes, takesLong: false, held: nil, kind: .signal(of: subscription), work: work),
            isNext: isNext)
    }

    /// Forgets the signal of a subscription that has ended.
    func forget(_ subscription: AnyObject) {
        waiting.removeSignal(of: subscription)
        if waiting.isEmpty { share.waiting[ObjectIdentifier(self)] = nil }
    }

    private func add(_ work: WaitingWork, isNext: Bool) {
        waiting.add(work, isNext: isNext)
        share.waiting[ObjectIdentifier(self)] = self
        if unread >= Self.limit { return ask() }
        // Work that waits only for its user's rest continues after that.
        if waitsForOthers { share.askAll() }
        share.askLater()
    }

    /// Counts bytes that were sent.
    ///
    /// - Returns: whether the client's disconnection must be noticed from now on.
    func noteSent(_ bytes: Int) -> Bool {
        unread += bytes
        let isFirst = !isCounted && unread > Self.trifle
        if isCounted {
            share.count(bytes)
        } else if isFirst {
            isCounted = true
            share.count(unread)
            share.counted[ObjectIdentifier(self)] = self
        }
        if unread > Self.limit / 2 || (isCounted && !share.hasRoom(for: 0)) { ask() }
        return isFirst
    }

    /// Forgets everything, because the client has disconnected, but for the calls that expect no reply: a program may
    /// send one and end.
    func close() {
        var left = WaitingLine()
        while let work = waiting.removeFirst() {
            if work.isUnansweredCall { left.add(work, isNext: false) } else { leave(work) }
        }
        waiting = left
        retry = nil
        share.counted[ObjectIdentifier(self)] = nil
        if waiting.isEmpty { share.waiting[ObjectIdentifier(self)] = nil }
        setUnread(0)
        share.wake()
    }

    // MARK: Asking

    /// Finds out how much the client has not read.
    func ask() {
        if isAsking || retry != nil { return }
        isAsking = true
        let asked = unread
        EventLoop.task { [weak self, connection, name] in
            let left = await connection.undelivered(to: name)
            self?.answered(asked, left: left)
        }
    }

    /// - Parameter left: how many bytes the bus still holds; `nil` if unknown.
    private func answered(_ asked: Int, left: Int?) {
        isAsking = false
        let before = unread
        if let left { setUnread(left + max(0, unread - asked)) }
        share.wake()
        if waiting.isEmpty { return patience = Self.shortestPatience }
        if unread < Self.limit { return }
        // A client that doesn't read for long is asked about less often.
        patience = unread < before ? Self.shortestPatience : min(patience * 2, .seconds(1))
        retry = EventLoop.shared.after(patience, accuracy: .milliseconds(5)) { [weak self] in
            self?.retry = nil
            self?.ask()
        }
    }

    /// Whether there is room for the next waiting work.
    var canProceed: Bool { waiting.first.map { fits($0.bytes, $0.takesLong) } ?? false }

    /// Does the waiting work for which there is room, until a time, and before it others' calls that it comes after.
    /// - Parameter end: the time. What reading the callers' next calls takes makes it earlier.
    func proceed(until end: inout UInt64) {
        if waiting.isEmpty { return }
        while EventLoop.now < end, let done = next.doNext() { end -= done.readingTime }
        settle()
    }

    /// The client whose work goes on next, so that this one's can. Each one's call came before that of the one before.
    private var next: Delivery {
        var next = self
        while let call = next.waiting.first, let earlier = share.unansweredCalls.delivery(before: call),
            earlier !== next
        {
            next = earlier
        }
        return next
    }

    /// Does the next waiting work, and returns it; `nil` if there is none, or no room for it.
    private func doNext() -> WaitingWork? {
        guard let next = waiting.first, fits(next.bytes, next.takesLong) else { return nil }
        _ = waiting.removeFirst()
        leave(next)
        if waiting.isEmpty { share.waiting[ObjectIdentifier(self)] = nil }
        next.work()
        return next
    }

    private func leave(_ work: WaitingWork) {
        share.unansweredCalls.remove(work)
        if work.isCall { waitingCalls -= 1 }
        if let held = work.held { share.release(held) }
    }

    private func setUnread(_ bytes: Int) {
        if isCounted { share.count(bytes - unread) }
        unread = bytes
    }
}

extension BusConnection {
    /// Returns how many bytes the bus holds for a client; `nil` if neither the bus nor the client answers.
    fileprivate func undelivered(to name: String) async -> Int? {
        if let bytes = try? await undeliveredBytes(to: name) { return bytes }
        return await hasRead(name) ? 0 : nil
    }

    /// Waits until a client has read what was sent to it. Any error but a missing reply is an answer too.
    private func hasRead(_ name: String) async -> Bool {
        do {
            try await invoke(name, "/", "org.freedesktop.DBus.Peer", "Ping")
            return true
        } catch {
            return (error as? BusError)?.name != BusError.noReply("").name
        }
    }
}
