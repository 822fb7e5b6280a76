// SPDX-License-Identifier: Apache-2.0

/// What a service keeps about a peer. It is a base class, because a cast to a subclass looks at one word, unlike a cast
/// from `AnyObject`.
@BusActor
open class PeerContext {
    /// Makes a context.
    package init() {}
}

/// The other end of messages: a connection to the bus, under its unique name.
///
/// A unique name has one object as long as that is needed: while it is held or referred to, and for a while after its
/// last message. The bus never reuses unique names, so an object always stands for the same connection.
@BusActor
package final class Peer {
    /// The unique name, such as `:1.42`; empty without a bus.
    package nonisolated let uniqueName: String
    /// The peer's user and process.
    package nonisolated let credentials: Credentials
    /// What the service keeps about this peer. It is released when the peer is forgotten.
    package var context: PeerContext?

    private let reference: ConnectionReference
    private var holds = 0
    /// When the peer was last seen, as a growing number.
    var lastUse: UInt64 = 0

    init(_ uniqueName: String, _ credentials: Credentials, on reference: ConnectionReference) {
        self.uniqueName = uniqueName
        self.credentials = credentials
        self.reference = reference
    }

    /// Whether the peer is remembered, and its vanishing reported.
    package var isHeld: Bool { holds > 0 }

    /// Remembers this peer until ``release()`` was called as often. Its vanishing is reported to ``Peers/onVanished``.
    ///
    /// That is so even if it has vanished already. Once it has vanished, it is no longer held.
    package func hold() {
        holds += 1
        if holds == 1 { reference.connection?.peers.startWatching(self) }
    }

    /// Ends one ``hold()``; does nothing if the peer isn't held.
    package func release() {
        guard holds > 0 else { return }
        holds -= 1
        if holds == 0 { reference.connection?.peers.stopWatching(self) }
    }

    /// Ends all holds, because the peer has vanished.
    func releaseAll() {
        holds = 0
    }
}
