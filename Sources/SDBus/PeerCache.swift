// SPDX-License-Identifier: Apache-2.0

/// The remembered peers: those that are held or referred to, and the last ones seen.
@BusActor
struct PeerCache {
    /// The number of peers to remember that aren't in use.
    static let capacity = 64

    private var peers: [String: Peer] = [:]
    private var clock: UInt64 = 0
    /// The number of peers in use when idle ones were last searched, which looks at every peer.
    private var busy = 0
    /// The sender of the last message, which mostly sends the next one too.
    private var last: Peer?
    private var lastName = LastString()

    /// Returns the peer with a unique name; `nil` if it isn't remembered.
    mutating func peer(_ name: UnsafePointer<CChar>) -> Peer? {
        let name = lastName.string(name)
        if let last, last.uniqueName == name { return last }
        guard let peer = peers[name] else { return nil }
        touch(peer)
        return peer
    }

    /// Remembers a peer. If there are too many, those seen longest ago are forgotten.
    mutating func insert(_ peer: Peer) {
        peers[peer.uniqueName] = peer
        touch(peer)
        if peers.count > Self.capacity + busy { forgetIdle() }
    }

    private mutating func forgetIdle() {
        var idle: [(name: String, lastUse: UInt64)] = []
        var index = peers.startIndex
        // Not over peers.indices, which would refer to all of them.
        while index != peers.endIndex {
            // If a call's peer were forgotten, the next message would create another one, with its own context.
            if !peers.values[index].isHeld, isKnownUniquelyReferenced(&peers.values[index]) {
                idle.append((peers.keys[index], peers.values[index].lastUse))
            }
            peers.formIndex(after: &index)
        }
        busy = peers.count - idle.count
        guard idle.count > Self.capacity else { return }
        idle.sort { $0.lastUse < $1.lastUse }
        // Removes more than necessary, so that the next ones cost nothing.
        for peer in idle.dropLast(Self.capacity * 3 / 4) { remove(peer.name) }
    }

    /// Forgets a peer.
    @discardableResult
    mutating func remove(_ name: String) -> Peer? {
        if last?.uniqueName == name { last = nil }
        return peers.removeValue(forKey: name)
    }

    private mutating func touch(_ peer: Peer) {
        clock += 1
        peer.lastUse = clock
        last = peer
    }
}
