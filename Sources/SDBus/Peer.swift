// SPDX-License-Identifier: Apache-2.0

/// What a service keeps about a peer. A class to inherit from: a cast to a subclass looks at one word, which one from
/// `AnyObject` doesn't.
@BusActor
open class PeerContext {
    /// Makes one.
    public init() {}
}

/// Someone at the other end: a connection to the bus, under its unique name.
///
/// There is one object for a unique name as long as it is needed: while it is held or referred to, and for a while after
/// its last message. Unique names are never used again, so no object becomes someone else's.
@BusActor
public final class Peer {
    /// The unique name, as `:1.42`; empty where there is no bus.
    public nonisolated let uniqueName: String
    /// Who it is.
    public nonisolated let credentials: Credentials
    /// What the service keeps about this peer; it goes when the peer is forgotten.
    public var context: PeerContext?

    private let reference: ConnectionReference
    private var holds = 0
    /// When it was last seen, as a number that grows.
    var lastUse: UInt64 = 0

    init(_ uniqueName: String, _ credentials: Credentials, on reference: ConnectionReference) {
        self.uniqueName = uniqueName
        self.credentials = credentials
        self.reference = reference
    }

    /// Whether it is remembered, and its vanishing told.
    public var isHeld: Bool { holds > 0 }

    /// Remembers this peer until as many ``release()``; ``Peers/onVanished`` tells if it goes before.
    ///
    /// That is so also if it has gone already. After it has vanished it isn't held any more.
    public func hold() {
        holds += 1
        if holds == 1 { reference.connection?.peers.startWatching(self) }
    }

    /// Ends what ``hold()`` began; nothing happens if it isn't held.
    public func release() {
        guard holds > 0 else { return }
        holds -= 1
        if holds == 0 { reference.connection?.peers.stopWatching(self) }
    }

    /// Ends all holds: it has vanished.
    func releaseAll() {
        holds = 0
    }
}
