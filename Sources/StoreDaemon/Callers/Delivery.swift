// SPDX-License-Identifier: Apache-2.0

// How much may be on its way to a client.
//
// What the bus holds for a client that does not read counts against the service that sent it, and when it is too
// much (127 MiB on the system bus) the bus reads nothing more of the service, for everybody. So everything that is
// sent is counted, by client and by user, whether a handler or libsystemd wrote it. Beyond half of what a client may
// have, the bus is asked how much it really holds; beyond all of it, the client's further calls and signals wait here
// until it holds less. A user's clients share a budget (see UserShare): once it is spent, answers that may be large
// wait for any of them to read.
//
// Both buses tell it (BusAccounting). Where that is not to be had, the client is asked for a sign of life, which a library
// gives by itself once it has read what came before, unless it blocks in a call of its own.

internal import SDBus
internal import StoreBus

/// What is on its way to one client.
@BusActor
final class Delivery {
    private let connection: BusConnection
    private let name: String
    let share: UserShare
    /// Called after what has waited was done.
    private let settle: () -> Void

    private(set) var unread = 0
    private(set) var isAsking = false
    private var isCounted = false
    private var waiting: [Waiting] = []
    private var waitingCalls = 0
    private var retry: EventSource?
    private var patience = Delivery.shortestPatience

    /// A client may have so many bytes on their way.
    static let limit = 4 << 20
    /// So many are nothing to anybody, and not counted against the user.
    static let trifle = 16 << 10
    /// Refusals may go beyond a limit by so much; then calls get no answer at all.
    private static let reserve = 64 << 10
    private static let shortestPatience = Duration.milliseconds(20)

    private struct Waiting {
        /// What is going to be sent, about.
        let bytes: Int
        /// It may keep everybody waiting while it is done.
        var takesLong = false
        /// What a call holds meanwhile; `nil` for a signal.
        let held: HeldSize?
        let work: () -> Void
    }

    init(to name: String, _ share: UserShare, on connection: BusConnection, settle: @escaping () -> Void) {
        self.name = name
        self.share = share
        self.connection = connection
        self.settle = settle
        share.join()
    }

    isolated deinit { share.leave() }

    /// Whether so many bytes can be sent now. If not, the caller waits.
    ///
    /// - Parameter takesLong: whether it may take long to make them.
    func hasRoom(for bytes: Int, takingLong takesLong: Bool = false) -> Bool {
        waiting.isEmpty && fits(bytes, takesLong)
    }

    /// Whether there is room for an answer whose call is let go on already.
    func fits(_ bytes: Int) -> Bool { fits(bytes, false) }

    private func fits(_ bytes: Int, _ takesLong: Bool) -> Bool {
        unread < Self.limit && isLittle(bytes, or: share.hasRoom(for: bytes)) && !(takesLong && share.rest.isUnderWay)
    }

    private func isLittle(_ bytes: Int, or hasRoom: @autoclosure () -> Bool) -> Bool {
        unread + bytes <= Self.trifle || hasRoom()
    }

    /// Whether something waits for what the user's other clients, or other users, have not read.
    var waitsForOthers: Bool {
        guard let next = waiting.first, unread < Self.limit else { return false }
        return !isLittle(next.bytes, or: share.hasRoom(for: next.bytes))
    }

    /// Whether there is still room to say that there is none.
    var canRefuse: Bool { unread < Self.limit + Self.reserve && share.canRefuse }

    /// Answers a call once the client, or another one of its user, has read what was sent to it.
    ///
    /// - Parameters:
    ///   - bytes: about how large the answer is.
    ///   - takesLong: whether it may take long to make it.
    ///   - held: how large the call is.
    ///   - isNext: whether it was let go on already, so that those that wait came after it.
    func wait(
        for bytes: Int, takingLong takesLong: Bool, holding held: HeldSize, isNext: Bool = false,
        _ work: @escaping () -> Void
    ) throws(BusError) {
        guard waitingCalls < share.bounds.waitingCalls else {
            throw .limitsExceeded("The connection doesn't read its answers, and \(waitingCalls) calls wait for that.")
        }
        try share.hold(held)
        waitingCalls += 1
        wait(Waiting(bytes: bytes, takesLong: takesLong, held: held, work: work), isNext: isNext)
    }

    /// Sends a signal once there is room. There is one for each subscription, so these need no other bound.
    func wait(toTell bytes: Int, _ work: @escaping () -> Void) {
        wait(Waiting(bytes: bytes, held: nil, work: work))
    }

    private func wait(_ work: Waiting, isNext: Bool = false) {
        waiting.insert(work, at: isNext ? 0 : waiting.count)
        share.waiting[ObjectIdentifier(self)] = self
        if unread >= Self.limit { return ask() }
        // What only waits for its user's rest goes on after that.
        if waitsForOthers { share.askAll() }
        share.askLater()
    }

    /// Counts what was sent.
    ///
    /// - Returns: whether the client's end has to be known from now on.
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

    /// Forgets everything: the client is gone.
    func close() {
        for entry in waiting { leave(entry) }
        waiting = []
        retry = nil
        share.counted[ObjectIdentifier(self)] = nil
        share.waiting[ObjectIdentifier(self)] = nil
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

    /// - Parameter left: what the bus still holds; `nil` if that is unknown.
    private func answered(_ asked: Int, left: Int?) {
        isAsking = false
        let before = unread
        if let left { setUnread(left + max(0, unread - asked)) }
        proceed()
        if unread < before { share.wake() } else { share.askLater() }
        if waiting.isEmpty { return patience = Self.shortestPatience }
        if unread < Self.limit { return }
        // A client that reads nothing for long is not asked as often.
        patience = unread < before ? Self.shortestPatience : min(patience * 2, .seconds(1))
        retry = EventLoop.shared.after(patience, accuracy: .milliseconds(5)) { [weak self] in
            self?.retry = nil
            self?.ask()
        }
    }

    /// Does what has waited, as far as there is room.
    func proceed() {
        if waiting.isEmpty { return }
        while let next = waiting.first, fits(next.bytes, next.takesLong) {
            waiting.removeFirst()
            leave(next)
            next.work()
        }
        if waiting.isEmpty { share.waiting[ObjectIdentifier(self)] = nil }
        settle()
    }

    private func leave(_ entry: Waiting) {
        guard let held = entry.held else { return }
        waitingCalls -= 1
        share.release(held)
    }

    private func setUnread(_ bytes: Int) {
        if isCounted { share.count(bytes - unread) }
        unread = bytes
    }
}

extension BusConnection {
    /// How many bytes the bus holds for a client; `nil` if neither the bus nor the client says.
    fileprivate func undelivered(to name: String) async -> Int? {
        if let bytes = try? await undeliveredBytes(to: name) { return bytes }
        return await hasRead(name) ? 0 : nil
    }

    /// Waits until a client has read what was sent to it. An error is an answer as well, but for none at all.
    private func hasRead(_ name: String) async -> Bool {
        do {
            try await invoke(name, "/", "org.freedesktop.DBus.Peer", "Ping")
            return true
        } catch {
            return (error as? BusError)?.name != BusError.noReply("").name
        }
    }
}
