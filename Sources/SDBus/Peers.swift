// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// The peers of a connection: the senders of messages, and which of them are still connected.
@BusActor
package final class Peers {
    /// Called when a peer that is held has vanished; it is no longer held then.
    package var onVanished: (@BusActor (Peer) -> Void)?
    /// Examines a sender before its calls are considered, if something of it takes long to find out. The calls wait
    /// until the closure is called, with the peer's first context, or with the error that all of them get.
    ///
    /// It is not called where there is no bus.
    package var examine:
        (@BusActor (Credentials, _ done: @escaping @BusActor (Result<PeerContext?, BusError>) -> Void) -> Void)?
    /// The peer's credentials where there is no bus, for tests; those of the socket if `nil`.
    package var directCredentials: Credentials?

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

    /// Ends with the connection, which was closed.
    func close() {
        vanishingMatch = nil
        (onVanished, examine) = (nil, nil)
    }

    /// Remembers a peer.
    func insert(_ peer: Peer) { cache.insert(peer) }

    /// Returns the sender of the message being dispatched; `nil` if there is none, or it is unknown.
    func current() -> Peer? {
        guard let message = sd_bus_get_current_message(bus) else { return nil }
        return peer(of: message)
    }

    /// Returns the sender of a message; `nil` if it is unknown, and then nothing may be done for it.
    ///
    /// Senders of calls are known by the time a call is dispatched: see ``Arrivals``.
    func peer(of message: OpaquePointer) -> Peer? {
        guard isBusClient else { return directPeer() }
        guard let sender = sd_bus_message_get_sender(message) else { return nil }
        return cache.peer(sender)
    }

    /// Returns the peer of a connection without a bus.
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

    // MARK: Vanished peers

    /// One match rule for all held peers, because the bus allows a connection only 512.
    private static let vanishingRule: StaticString = """
        type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',\
        interface='org.freedesktop.DBus',member='NameOwnerChanged',arg2=''
        """

    /// Watches a peer, which is held from now on.
    func startWatching(_ peer: Peer) {
        guard isBusClient, let connection = reference.connection, connection.isOpen else { return }
        held.insert(ObjectIdentifier(peer))
        cache.insert(peer)
        if vanishingMatch == nil { vanishingMatch = try? vanishingSlot(on: connection) }
        // It may have vanished before the rule was there. The bus answers in order, so we ask afterwards.
        try? askWhetherGone(peer, on: connection)
    }

    /// Stops watching a peer, which is no longer held.
    func stopWatching(_ peer: Peer) {
        held.remove(ObjectIdentifier(peer))
        if held.isEmpty { vanishingMatch = nil }
    }

    private func vanishingSlot(on connection: BusConnection) throws(BusError) -> Slot {
        // Not weak, for the same reason as the reference: each message uses this object.
        let target = MatchTarget(onlyFromBus: true) { [reference] message in
            guard let name = try? message.readString(), name.hasPrefix(":") else { return }
            reference.connection?.peers.vanished(name)
        }
        // Without a handler for the answer, libsystemd ends the connection if the bus refuses the rule. That is right:
        // we can't continue without knowing who has vanished.
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
