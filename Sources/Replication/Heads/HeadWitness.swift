// SPDX-License-Identifier: Apache-2.0

/// What this process has joined from heads, to notice when the remote has lost some of it.
///
/// Receiving never causes an upload, so what a device has written is in its own head alone until others write. If that
/// head disappears, its writer publishes again. But the writer may be lost, as when a server is restored to a backup
/// from before its last uploads. Then those who have joined the head publish what they have.
package struct HeadWitness: Sendable {
    /// The digests of the heads that were there and joined at the end of the last pull.
    private var heads: Set<Bits128> = []
    /// What joined heads had taken in, by store.
    private var vectors: [String: VersionVector] = [:]
    /// Whether something was missing the last time.
    private var isMissing = false

    /// The most dots that are remembered: 4 MiB. What has more is left to the daily head.
    private static let mostDots = 1 << 18

    /// Makes the state of a process that has joined nothing.
    package init() {}

    /// Notes heads that a pull has found and joined.
    /// - Parameter digests: the digests of those of the heads that are joined as a whole.
    package mutating func note(_ found: [SeenHead], joined digests: Set<Bits128>) {
        for head in found where digests.contains(head.digest) && !heads.contains(head.digest) {
            vectors.formUnion(head.states)
        }
        heads = Set(found.map(\.digest)).intersection(digests)
        if vectors.values.reduce(0, { $0 + $1.dots.count }) > Self.mostDots { forget() }
    }

    /// Whether a joined head is gone, and those that are there have not taken in everything that was joined.
    /// - Parameter found: the heads that are there. Each of them was decoded.
    package mutating func misses(in found: [SeenHead]) -> Bool {
        guard Rule.lostHeads.isOn, isMissing || !heads.isSubset(of: found.map(\.digest)) else { return false }
        var present: [String: VersionVector] = [:]
        for head in found { present.formUnion(head.states) }
        isMissing = vectors.contains { !(present[$0] ?? VersionVector()).isSuperset(of: $1) }
        return isMissing
    }

    /// Notes that this device has published what it has joined, or will read everything again.
    package mutating func forget() { (heads, vectors, isMissing) = ([], [:], false) }
}
