// SPDX-License-Identifier: Apache-2.0

/// The peers that are remembered: those that are held or referred to, and the last ones seen.
@BusActor
struct PeerCache {
    /// How many that aren't held are remembered.
    static let capacity = 64

    private var peers: [String: Peer] = [:]
    private var clock: UInt64 = 0
    /// How many were needed when those that aren't were looked for: that takes a look at each.
    private var busy = 0
    /// The sender of the last message, most often that of the next one.
    private var last: Peer?
    private var lastName = LastString()

    /// The peer of a unique name, if it is remembered.
    mutating func peer(_ name: UnsafePointer<CChar>) -> Peer? {
        let name = lastName.string(name)
        if let last, last.uniqueName == name { return last }
        guard let peer = peers[name] else { return nil }
        touch(peer)
        return peer
    }

    /// Remembers a peer, and forgets those seen longest ago if there are too many.
    mutating func insert(_ peer: Peer) {
        peers[peer.uniqueName] = peer
        touch(peer)
        if peers.count > Self.capacity + busy { forgetIdle() }
    }

    private mutating func forgetIdle() {
        var idle: [(name: String, lastUse: UInt64)] = []
        var index = peers.startIndex
        // Not over peers.indices: that would refer to all of them.
        while index != peers.endIndex {
            // One that a call refers to would otherwise get a clone with the next message, and there were two contexts.
            if !peers.values[index].isHeld, isKnownUniquelyReferenced(&peers.values[index]) {
                idle.append((peers.keys[index], peers.values[index].lastUse))
            }
            peers.formIndex(after: &index)
        }
        busy = peers.count - idle.count
        guard idle.count > Self.capacity else { return }
        idle.sort { $0.lastUse < $1.lastUse }
        // Some more than have to go, so that the next ones cost nothing.
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
