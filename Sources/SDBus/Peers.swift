// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// The peers of a connection: whom messages are from, and who of them still is there.
@BusActor
public final class Peers {
    /// Called when a peer that is held has gone; it isn't held any more.
    public var onVanished: (@BusActor (Peer) -> Void)?
    /// Who is at the other end where there is no bus, for tests; what the socket says if `nil`.
    public var directCredentials: Credentials?

    private let bus: OpaquePointer
    private let isBusClient: Bool
    private let reference: ConnectionReference
    private var cache = PeerCache()
    private var onlyPeer: Peer?
    private var held: Set<ObjectIdentifier> = []
    private(set) var vanishingMatch: Slot?

    init(_ bus: OpaquePointer, isBusClient: Bool, _ reference: ConnectionReference) {
        (self.bus, self.isBusClient, self.reference) = (bus, isBusClient, reference)
    }

    /// The connection was closed.
    func close() {
        vanishingMatch = nil
        onVanished = nil
    }

    /// Remembers a peer.
    func insert(_ peer: Peer) { cache.insert(peer) }

    /// The sender of the message that is being dispatched; `nil` if there is none, or it can't be known.
    func current() -> Peer? {
        guard let message = sd_bus_get_current_message(bus) else { return nil }
        return peer(of: message)
    }

    /// The sender of a message; `nil` if it isn't known, and then nothing may be done for it.
    ///
    /// Senders of calls are known by the time a call is dispatched: see ``Arrivals``.
    func peer(of message: OpaquePointer) -> Peer? {
        guard isBusClient else { return directPeer() }
        guard let sender = sd_bus_message_get_sender(message) else { return nil }
        return cache.peer(sender)
    }

    /// The one at the other end of a connection without a bus.
    private func directPeer() -> Peer? {
        if let onlyPeer { return onlyPeer }
        guard let credentials = directCredentials ?? socketCredentials() else { return nil }
        let peer = Peer("", credentials, on: reference)
        onlyPeer = peer
        return peer
    }

    private func socketCredentials() -> Credentials? {
        var credentials: OpaquePointer?
        let mask = UInt64(SD_BUS_CREDS_EUID) | UInt64(SD_BUS_CREDS_PID)
        guard sd_bus_get_owner_creds(bus, mask, &credentials) >= 0 else { return nil }
        defer { sd_bus_creds_unref(credentials) }
        var uid = uid_t()
        guard sd_bus_creds_get_euid(credentials, &uid) >= 0 else { return nil }
        var pid = pid_t()
        return Credentials(uid: uid, pid: sd_bus_creds_get_pid(credentials, &pid) >= 0 ? pid : nil)
    }

    // MARK: Who is still there

    /// One match for all held peers: the bus allows a connection 512.
    private static let vanishingRule: StaticString = """
        type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',\
        interface='org.freedesktop.DBus',member='NameOwnerChanged',arg2=''
        """

    /// A peer is held from now on.
    func startWatching(_ peer: Peer) {
        guard isBusClient, let connection = reference.connection, connection.isOpen else { return }
        held.insert(ObjectIdentifier(peer))
        cache.insert(peer)
        if vanishingMatch == nil { vanishingMatch = try? vanishingSlot(on: connection) }
        // It may have gone before the match was there. The bus answers in order, so this is asked after.
        try? askWhetherGone(peer, on: connection)
    }

    /// A peer is not held any more.
    func stopWatching(_ peer: Peer) {
        held.remove(ObjectIdentifier(peer))
        if held.isEmpty { vanishingMatch = nil }
    }

    private func vanishingSlot(on connection: BusConnection) throws(BusError) -> Slot {
        // Not weak, for the reason that the reference has: each message uses this object.
        let target = MatchTarget { [reference] message in
            guard let name = try? message.readString(), name.hasPrefix(":") else { return }
            reference.connection?.peers.vanished(name)
        }
        // Without a handler for the answer: libsystemd ends the connection if the bus refuses, and without knowing who
        // has gone there is no going on.
        return try connection.addMatch(Self.vanishingRule.description, target, installed: nil)
    }

    private func askWhetherGone(_ peer: Peer, on connection: BusConnection) throws {
        let call = try connection.newBusCall("GetNameOwner")
        try call.append(peer.uniqueName)
        try connection.start(call, timeout: nil) { [reference] result in
            guard case .failure(let error) = result, BusError(error).name == BusError.nameHasNoOwner else { return }
            reference.connection?.peers.vanished(peer)
        }
    }

    private func vanished(_ name: String) {
        guard let peer = cache.remove(name) else { return }
        vanished(peer)
    }

    private func vanished(_ peer: Peer) {
        cache.remove(peer.uniqueName)
        guard peer.isHeld else { return }
        peer.releaseAll()
        stopWatching(peer)
        onVanished?(peer)
    }
}
