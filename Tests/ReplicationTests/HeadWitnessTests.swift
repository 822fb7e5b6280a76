// SPDX-License-Identifier: Apache-2.0

import Replication
import Testing

@Suite struct HeadWitnessTests {
    private func head(_ origin: UInt64, _ sequence: UInt64, _ seen: [UInt64: UInt64]) -> SeenHead {
        let vector = VersionVector(Dictionary(uniqueKeysWithValues: seen.map { (Origin(bits: $0), $1) }))
        let identity = HeadIdentity(
            origin: Origin(bits: origin), digest: Bits128(high: origin, low: sequence), sequence: sequence)
        return SeenHead(
            identity, under: identity.origin.description, isWhole: true,
            states: ["app": HeadState(digest: identity.digest, vector: vector)], segments: [])
    }

    private func witness(of heads: [SeenHead], joined: [SeenHead]? = nil) -> HeadWitness {
        var witness = HeadWitness()
        witness.note(heads, joined: Set((joined ?? heads).map(\.digest)))
        return witness
    }

    @Test func `a joined head that goes is missed until the others have all that it had`() {
        let (own, other) = (head(1, 1, [1: 1]), head(2, 1, [1: 1, 2: 3]))
        var witness = witness(of: [own, other])
        var missed = [witness.misses(in: [own, other])]
        for _ in 0..<2 {
            missed.append(witness.misses(in: [own]))
            // The publication may have failed, and the next pull joins what is there.
            witness.note([own], joined: [own.digest])
        }
        missed.append(witness.misses(in: [head(1, 2, [1: 2, 2: 3])]))
        #expect(missed == [false, true, true, false])
    }

    @Test func `a head that its writer has replaced is not missed, and an older one in its place is`() {
        var witness = witness(of: [head(2, 2, [2: 5])])
        let missed = [head(3, 1, [2: 5, 3: 1]), head(2, 1, [2: 4])].map { witness.misses(in: [$0]) }
        #expect(missed == [false, true])
    }

    @Test func `what was not joined, or was published since, is not missed`() {
        let (own, other) = (head(1, 1, [1: 1]), head(2, 1, [2: 3]))
        var witness = witness(of: [own, other], joined: [own])
        var missed = [witness.misses(in: [own])]
        witness.note([own, other], joined: [own.digest, other.digest])
        witness.forget()
        missed.append(witness.misses(in: [own]))
        #expect(missed == [false, false])
    }
}
