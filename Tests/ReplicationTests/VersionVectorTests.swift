// SPDX-License-Identifier: Apache-2.0

import Replication
import SeededRandom
import Testing

@Suite struct VersionVectorTests {
    private func vector(_ seen: [UInt64: UInt64]) -> VersionVector {
        VersionVector(Dictionary(uniqueKeysWithValues: seen.map { (Origin(bits: $0), $1) }))
    }

    @Test func `a union has the greatest dot of each origin, in the order of origins`() {
        var choices = SplitMix(seed: 3)
        for _ in 0..<2000 {
            var seen: [[UInt64: UInt64]] = [[:], [:]]
            for index in 0..<2 {
                for _ in 0..<Int.random(in: 0..<12, using: &choices) {
                    seen[index][.random(in: 0..<16, using: &choices)] = .random(in: 1..<4, using: &choices)
                }
            }
            var union = vector(seen[0])
            union.formUnion(vector(seen[1]))
            #expect(union == vector(seen[0].merging(seen[1]) { max($0, $1) }))
            #expect(union.isSuperset(of: vector(seen[0])) && union.isSuperset(of: vector(seen[1])))
        }
    }

    @Test(.timeLimit(.minutes(30)))
    func `many origins that lie between each other are joined in linear time`() {
        // Inserting the dots one by one takes hours, because each moves half of the others.
        let count: UInt64 = 400_000
        var even = vector(Dictionary(uniqueKeysWithValues: (0..<count).map { ($0 * 2, 1) }))
        even.formUnion(vector(Dictionary(uniqueKeysWithValues: (0..<count).map { ($0 * 2 + 1, 1) })))
        #expect(even.dots.count == Int(2 * count))
    }
}
