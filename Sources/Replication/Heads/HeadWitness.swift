// SPDX-License-Identifier: Apache-2.0

/// The heads that this process has joined, to notice when the remote has lost what was in them.
///
/// Receiving never causes an upload, so what a device has written is in its own head alone until others write. If that
/// head disappears, its writer publishes again. But the writer may be lost, as when a server is restored to a backup
/// from before its last uploads. Then those who have joined the head publish what they have.
package struct HeadWitness: Sendable {
    /// The states of joined heads, by the heads' digests.
    private var joined: [Bits128: [String: HeadState]] = [:]

    /// Makes the state of a process that has joined nothing.
    package init() {}

    /// Notes heads that a pull has found and joined.
    /// - Parameter digests: the digests of those of the heads that are joined as a whole.
    package mutating func note(_ heads: [SeenHead], joined digests: Set<Bits128>) {
        for head in heads where digests.contains(head.digest) { joined[head.digest] = head.states }
    }

    /// Whether a joined head is gone, and those that are there have not seen everything that it had.
    package mutating func misses(in heads: [SeenHead]) -> Bool {
        guard Rule.lostHeads.isOn else { return false }
        let present = Set(heads.map(\.digest))
        let gone = joined.filter { !present.contains($0.key) }
        if gone.isEmpty { return false }
        var vectors: [String: VersionVector] = [:]
        for (store, state) in heads.flatMap(\.states) {
            vectors[store, default: VersionVector()].formUnion(state.vector)
        }
        for (digest, states) in gone
        where states.allSatisfy({ (vectors[$0] ?? VersionVector()).isSuperset(of: $1.vector) }) {
            joined[digest] = nil
        }
        return gone.keys.contains { joined[$0] != nil }
    }

    /// Notes that this device has published what it has joined, or will read everything again.
    package mutating func forget() { joined = [:] }
}
