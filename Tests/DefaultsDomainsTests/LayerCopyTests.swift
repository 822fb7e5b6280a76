// SPDX-License-Identifier: Apache-2.0

import DefaultsDomains
import PropertyList
import SeededRandom
import Testing

struct LayerCopyTests {
    @Test func `a write is seen at once, and sent when the one before is answered`() {
        var copy = LayerCopy()
        copy.write(["a": .integer(1)])
        #expect(copy.visible == ["a": .integer(1)] && copy.nextCall() == nil)
        _ = copy.loaded(5, isComplete: true, ["b": .integer(2)])
        #expect(copy.visible == ["a": .integer(1), "b": .integer(2)])
        #expect(copy.nextCall() == ["a": .integer(1)])
        copy.write(["a": .integer(3)])
        copy.write(["a": .integer(4), "b": .none])
        #expect(copy.nextCall() == nil)
        _ = copy.acknowledged(6)
        #expect(copy.nextCall() == ["a": .integer(4), "b": .none])
        _ = copy.acknowledged(7)
        #expect(copy.isSettled && copy.visible == ["a": .integer(4)])
    }

    @Test func `of a call that is refused only what is refused by itself is taken back`() {
        var copy = LayerCopy()
        _ = copy.loaded(1, isComplete: true, [:])
        copy.write(["a": .integer(1), "b": .integer(2)], ticket: 7)
        #expect(copy.nextCall()?.count == 2)
        #expect(copy.refused() == nil)
        var taken: [Text] = []
        for _ in 0..<2 {
            let call = copy.nextCall() ?? [:]
            #expect(call.count == 1)
            if call["a"] != nil {
                taken += copy.refused()?.changes.keys.map { $0 } ?? []
            } else {
                _ = copy.acknowledged(2)
            }
        }
        #expect(taken == ["a"] && copy.visible == ["b": .integer(2)] && copy.isSettled)
    }

    @Test func `what goes as a whole is taken back as a whole`() {
        var copy = LayerCopy()
        _ = copy.loaded(1, isComplete: true, ["c": .integer(0)])
        copy.write(["a": .integer(1), "c": .none], isWhole: true, ticket: 1)
        _ = copy.nextCall()
        #expect(copy.refused()?.tickets == [1])
        #expect(copy.visible == ["c": .integer(0)])
    }

    @Test func `what was sent when the service went is sent again after what was written since`() {
        var copy = LayerCopy()
        _ = copy.loaded(1, isComplete: true, [:])
        copy.write(["a": .integer(1)])
        _ = copy.nextCall()
        copy.write(["a": .integer(2)])
        copy.lost()
        #expect(copy.pending == ["a": .integer(2)] && copy.nextCall() == nil)
        _ = copy.loaded(9, isComplete: true, ["a": .integer(7)])
        #expect(copy.visible == ["a": .integer(2)])
        #expect(copy.nextCall() == ["a": .integer(2)])
    }

    @Test func `what an outbox has is shown until the service says what it has`() {
        var copy = LayerCopy()
        copy.write(["a": .integer(1)])
        copy.preload(["a": .integer(5), "b": .integer(5)])
        #expect(copy.visible == ["a": .integer(1), "b": .integer(5)])
        _ = copy.loaded(1, isComplete: true, [:])
        #expect(copy.visible == ["a": .integer(1)])
    }

    /// A service that takes, refuses and changes things by itself, and answers that come in any order the bus allows.
    @Test(arguments: 0..<50)
    func `when all is answered the copy is what the service has`(seed: UInt64) {
        var random = SplitMix(seed: seed)
        var copy = LayerCopy()
        var (service, generation): ([Text: Value], UInt64) = ([:], 1)
        let keys: [Text] = ["a", "b", "c"]
        func anything() -> Value? {
            Bool.random(using: &random) ? .integer(Int64.random(in: 0..<9, using: &random)) : nil
        }
        _ = copy.loaded(generation, isComplete: true, service)
        var isSent = false
        for step in 0..<400 {
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1: copy.write([keys.randomElement(using: &random)!: anything()], isWhole: step.isMultiple(of: 7))
            case 2:
                service[keys.randomElement(using: &random)!] = anything()
                generation += 1
                _ = copy.loaded(generation, isComplete: true, service)
            case 3 where isSent:
                copy.lost()
                isSent = false
                _ = copy.loaded(generation, isComplete: true, service)
            default:
                guard let call = copy.nextCall() else { continue }
                isSent = true
                if Int.random(in: 0..<4, using: &random) == 0 {
                    _ = copy.refused()
                } else {
                    for (key, value) in call { service[key] = value }
                    generation += 1
                    _ = copy.acknowledged(generation)
                }
                isSent = false
            }
        }
        while let call = copy.nextCall() {
            for (key, value) in call { service[key] = value }
            generation += 1
            _ = copy.acknowledged(generation)
        }
        #expect(copy.isSettled && copy.visible == service)
    }
}
