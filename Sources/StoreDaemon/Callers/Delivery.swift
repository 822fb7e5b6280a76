// SPDX-License-Identifier: Apache-2.0

// How much may be on its way to a client.
//
// What the bus holds for a client that does not read counts against the service that sent it, and when it is too
// much (127 MiB on the system bus) the bus reads nothing more of the service, for everybody. So what is sent is
// counted, by client and by user. Beyond half of what a client may have, the bus is asked how much it really
// holds; beyond all of it, the client's further calls and signals wait here until it holds less.
//
// dbus-daemon tells it (GetConnectionStats). Where that is not to be had, the client is asked for a sign of life,
// which a library gives by itself once it has read what came before, unless it blocks in a call of its own.

internal import PropertyList
internal import SDBus
internal import StoreBus

/// What is on its way to one client.
@BusActor
final class Delivery {
    private let connection: BusConnection
    private let name: String
    private let share: UserShare
    /// Called once, when so much is on its way that the client's end has to be known.
    private let watch: () -> Void
    /// Called after what has waited was done.
    private let settle: () -> Void

    private var unread = 0
    private var isAsking = false
    private var isCounted = false
    private var waiting: [() -> Void] = []
    private var retry: EventSource?

    /// A client may have so many bytes on their way.
    private static let limit = 4 << 20
    /// So many are nothing to anybody.
    private static let trifle = 64 << 10

    init(
        to name: String, _ share: UserShare, on connection: BusConnection, watch: @escaping () -> Void,
        settle: @escaping () -> Void
    ) {
        self.name = name
        self.share = share
        self.connection = connection
        self.watch = watch
        self.settle = settle
    }

    /// Whether more can be sent now. Whoever finds that it can't waits with ``wait(_:)``.
    var hasRoom: Bool { unread < Self.limit && waiting.isEmpty && (unread == 0 || share.hasRoom) }

    /// Does something once the client has read what was sent to it.
    func wait(_ work: @escaping () -> Void) throws(BusError) {
        guard waiting.count < share.bounds.waitingCalls else {
            throw .limitsExceeded("The connection doesn't read its answers, and \(waiting.count) calls wait for that")
        }
        waiting.append(work)
        ask()
    }

    /// Counts what was sent.
    func noteSent(_ bytes: Int) {
        unread += bytes
        if isCounted {
            share.unread += bytes
        } else if unread > Self.trifle {
            isCounted = true
            share.unread += unread
            watch()
        }
        if unread > Self.limit / 2 || !share.hasRoom { ask() }
    }

    /// Forgets everything: the client is gone.
    func close() {
        waiting = []
        retry = nil
        setUnread(0)
    }

    private func ask() {
        if isAsking || retry != nil { return }
        isAsking = true
        let asked = unread
        EventLoop.task { [weak self, connection, name] in
            let left = await connection.undelivered(to: name)
            self?.answered(asked, left: left)
        }
    }

    /// - Parameter left: what the bus still holds; `nil` if nobody knows.
    private func answered(_ asked: Int, left: Int?) {
        isAsking = false
        if let left { setUnread(left + max(0, unread - asked)) }
        if waiting.isEmpty { return }
        let ready = waiting
        waiting = []
        for (index, work) in ready.enumerated() {
            guard hasRoom else {
                waiting = Array(ready[index...])
                break
            }
            work()
        }
        settle()
        if waiting.isEmpty { return }
        retry = EventLoop.shared.after(.milliseconds(20), accuracy: .milliseconds(5)) { [weak self] in
            self?.retry = nil
            self?.ask()
        }
    }

    private func setUnread(_ bytes: Int) {
        if isCounted { share.unread += bytes - unread }
        unread = bytes
    }
}

extension BusConnection {
    /// How many bytes the bus holds for a client; `nil` if neither the bus nor the client says.
    fileprivate func undelivered(to name: String) async -> Int? {
        do {
            return try await call(
                "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus.Debug.Stats",
                "GetConnectionStats", build: { try $0.append(name) }, decode: Self.outgoingBytes)
        } catch {
            return await hasRead(name) ? 0 : nil
        }
    }

    private static let outgoingBytes: @BusActor (Message) throws -> Int = { reply in
        var bytes: Int?
        try reply.readDictionary { name in
            guard name == "OutgoingBytes" else { return try reply.skip() }
            if case .integer(let number) = try reply.readValue() { bytes = Int(number) }
        }
        guard let bytes else { throw BusError.notSupported("The bus doesn't say what it holds for a connection") }
        return bytes
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

/// What is on its way to all clients of one user.
@BusActor
final class UserShare {
    var unread = 0
    /// What the user's clients may have waiting.
    var bounds: UserBounds

    init(_ bounds: UserBounds) {
        self.bounds = bounds
    }

    /// A user's clients may have so many bytes on their way together.
    private static let limit = 24 << 20

    var hasRoom: Bool { unread < Self.limit }
}
