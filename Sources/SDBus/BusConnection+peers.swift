// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// Peers: whom messages are from, and who of them still is there.
extension BusConnection {
    /// The sender of the message that is being dispatched; `nil` if there is none, or it can't be known.
    func currentPeer() -> Peer? {
        guard let message = sd_bus_get_current_message(bus) else { return nil }
        return peer(of: message)
    }

    /// The sender of a message; `nil` if it isn't known, and then nothing may be done for it.
    ///
    /// Senders of calls are known by the time a call is dispatched: see ``Arrivals``.
    func peer(of message: OpaquePointer) -> Peer? {
        guard isBusClient else { return directPeer() }
        guard let sender = sd_bus_message_get_sender(message) else { return nil }
        return peers.peer(sender)
    }

    /// The one at the other end of a connection without a bus.
    private func directPeer() -> Peer? {
        if let onlyPeer { return onlyPeer }
        guard let credentials = directCredentials ?? socketCredentials() else { return nil }
        let peer = Peer("", credentials, on: self)
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
        guard isBusClient, isOpen else { return }
        heldPeers.insert(ObjectIdentifier(peer))
        peers.insert(peer)
        if vanishingMatch == nil { vanishingMatch = try? vanishingSlot() }
        // It may have gone before the match was there. The bus answers in order, so this is asked after.
        try? askWhetherGone(peer)
    }

    /// A peer is not held any more.
    func stopWatching(_ peer: Peer) {
        heldPeers.remove(ObjectIdentifier(peer))
        if heldPeers.isEmpty { vanishingMatch = nil }
    }

    private func vanishingSlot() throws(BusError) -> Slot {
        let target = MatchTarget { [reference] message in
            guard let name = try? message.readString(), name.hasPrefix(":") else { return }
            reference.connection?.vanished(name)
        }
        // Without a handler for the answer: libsystemd ends the connection if the bus refuses, and without knowing who
        // has gone there is no going on.
        return try addMatch(Self.vanishingRule.description, target, installed: nil)
    }

    private func askWhetherGone(_ peer: Peer) throws {
        let call = try newBusCall("GetNameOwner")
        try call.append(peer.uniqueName)
        try start(call, timeout: nil) { [reference] result in
            guard case .failure(let error) = result, BusError(error).name == BusError.nameHasNoOwner else { return }
            reference.connection?.vanished(peer)
        }
    }

    private func vanished(_ name: String) {
        guard let peer = peers.remove(name) else { return }
        vanished(peer)
    }

    private func vanished(_ peer: Peer) {
        peers.remove(peer.uniqueName)
        guard peer.isHeld else { return }
        peer.releaseAll()
        stopWatching(peer)
        onPeerVanished?(peer)
    }
}
