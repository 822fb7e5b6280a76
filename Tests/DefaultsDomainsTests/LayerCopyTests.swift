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
        #expect(copy.nextCall()?.changes == ["a": .integer(1)])
        copy.write(["a": .integer(3)])
        copy.write(["a": .integer(4), "b": .none])
        #expect(copy.nextCall() == nil)
        _ = copy.acknowledged(6)
        #expect(copy.nextCall()?.changes == ["a": .integer(4), "b": .none])
        _ = copy.acknowledged(7)
        #expect(copy.isSettled && copy.visible == ["a": .integer(4)])
    }

    @Test func `of a call that is refused only what is refused by itself is taken back`() {
        var copy = LayerCopy()
        _ = copy.loaded(1, isComplete: true, [:])
        copy.write(["a": .integer(1), "b": .integer(2)], ticket: 7)
        #expect(copy.nextCall()?.changes.count == 2)
        #expect(copy.refused() == nil)
        var taken: [Text] = []
        for _ in 0..<2 {
            let call = copy.nextCall()?.changes ?? [:]
            #expect(call.count == 1)
            if call["a"] != nil {
                taken += copy.refused()?.changes.keys.map { $0 } ?? []
            } else {
                _ = copy.acknowledged(2)
            }
        }
        #expect(taken == ["a"] && copy.visible == ["b": .integer(2)] && copy.isSettled)
    }

    @Test func `one key too many of thousands costs a few calls`() {
        var copy = LayerCopy()
        _ = copy.loaded(1, isComplete: true, [:])
        copy.write(Changes(uniqueKeysWithValues: (0...16_384).map { (Text("\($0)"), .integer(1)) }), ticket: 1)
        var (calls, taken, room, generation) = (0, 0, 16_384, UInt64(1))
        while let call = copy.nextCall() {
            calls += 1
            if call.changes.count > room {
                taken += copy.refused()?.changes.count ?? 0
            } else {
                room -= call.changes.count
                generation += 1
                _ = copy.acknowledged(generation)
            }
        }
        #expect(taken == 1 && calls < 40 && copy.visible.count == 16_384 && copy.isSettled, "\(calls) calls")
    }

    @Test func `what is refused for a reason that holds for all is taken back without trying each`() {
        var copy = LayerCopy()
        _ = copy.loaded(1, isComplete: true, [:])
        copy.write(Changes(uniqueKeysWithValues: (0..<1000).map { (Text("\($0)"), .integer(1)) }), ticket: 1)
        var (calls, tickets, taken) = (0, [Ticket](), 0)
        while copy.nextCall() != nil {
            calls += 1
            guard let write = copy.refused(isForAll: true) else { continue }
            (tickets, taken) = (tickets + write.tickets, taken + write.changes.count)
        }
        #expect(calls < 15 && taken == 1000 && tickets == [1] && copy.visible.isEmpty && copy.isSettled)
    }

    @Test func `what goes as a whole is taken back as a whole`() {
        var copy = LayerCopy()
        _ = copy.loaded(1, isComplete: true, ["c": .integer(0)])
        copy.write(["a": .integer(1), "c": .none], isWhole: true, ticket: 1)
        // So an overloaded service is asked again, before the refusal counts.
        #expect(copy.nextCall()?.isIndivisible == true)
        #expect(copy.refused()?.tickets == [1])
        #expect(copy.visible == ["c": .integer(0)])
    }

    @Test(arguments: [(3, 9), (5, 9), (6, 1)] as [(Int64, UInt64)])
    func `what this process delivers for an ended one wins only over what was set earlier`(
        time: Int64, since: UInt64
    ) {
        var copy = LayerCopy()
        _ = copy.loaded(1, isComplete: true, ["a": .integer(0)])
        copy.lost()
        copy.write(["a": .integer(1)], at: 5)
        copy.noteDelivered(Outbox.Write(key: "a", value: .integer(2), isHost: false, time: time, generation: 1))
        _ = copy.loaded(9, isComplete: true, ["a": .integer(2)])
        #expect(copy.nextCall() == LayerCopy.Call(changes: ["a": .integer(1)], since: since, isIndivisible: true))
        // Later, another program may write the same value.
        copy.lost()
        copy.write(["a": .integer(3)], at: 6)
        _ = copy.loaded(12, isComplete: true, ["a": .integer(2)])
        #expect(copy.nextCall()?.since != 12)
    }

    @Test func `what is written as a whole means the layer, until a key is set by itself`() {
        var copy = LayerCopy()
        copy.write(["a": .integer(1), "b": .integer(1)], isWhole: true, replacingAll: true)
        copy.write(["b": .integer(2), "c": .integer(2)])
        #expect(copy.keysOfWhole == ["a"])
        // What was not known before goes, too.
        _ = copy.loaded(9, isComplete: true, ["d": .integer(0)])
        #expect(copy.keysOfWhole == ["a", "d"] && copy.pending["d"] == .some(nil))
    }

    @Test(arguments: [.integer(2), nil] as [Value?])
    func `what an ended process has set later wins also where no generation is known`(value: Value?) {
        var copy = LayerCopy()
        copy.write(["a": .integer(1), "b": .integer(1)], at: 5)
        copy.noteDelivered(Outbox.Write(key: "a", value: value, isHost: false, time: 6, generation: 0))
        copy.noteDelivered(Outbox.Write(key: "b", value: .integer(2), isHost: false, time: 4, generation: 0))
        var values: [Text: Value] = ["b": .integer(2)]
        values["a"] = value
        let changed = copy.loaded(9, isComplete: true, values)
        #expect(changed.contains("a") && copy.visible["a"] == value && copy.visible["b"] == .integer(1))
        #expect(copy.nextCall()?.changes == ["b": .integer(1)])
    }

    @Test func `what an ended process has set later and the service has refused doesn't win`() {
        var copy = LayerCopy()
        copy.write(["a": .integer(1)], at: 5)
        copy.noteDelivered(Outbox.Write(key: "a", value: .integer(2), isHost: false, time: 6, generation: 0))
        _ = copy.loaded(9, isComplete: true, [:])
        #expect(copy.nextCall()?.changes == ["a": .integer(1)])
    }

    @Test func `a write that has yielded is answered, and sent once even if it is refused`() {
        var copy = LayerCopy()
        copy.write(["a": .integer(1)], at: 5, ticket: 1)
        copy.noteDelivered(Outbox.Write(key: "a", value: .integer(2), isHost: false, time: 6, generation: 0))
        _ = copy.loaded(9, isComplete: true, ["a": .integer(2)])
        #expect(copy.nextCall()?.changes == [:])
        #expect(copy.refused()?.tickets == [1])
        #expect(copy.nextCall() == nil && copy.visible == ["a": .integer(2)])
    }

    @Test func `what was sent when the service went is sent again after what was written since`() {
        var copy = LayerCopy()
        _ = copy.loaded(1, isComplete: true, [:])
        copy.write(["a": .integer(1)])
        _ = copy.nextCall()
        copy.write(["a": .integer(2)])
        #expect(copy.unanswered("a") == [.integer(1)])
        copy.lost()
        #expect(copy.unanswered("a") == [.integer(1)])
        #expect(copy.pending == ["a": .integer(2)] && copy.nextCall() == nil)
        _ = copy.loaded(9, isComplete: true, ["a": .integer(7)])
        #expect(copy.visible == ["a": .integer(2)])
        #expect(copy.unanswered("a").isEmpty)
        #expect(copy.nextCall()?.changes == ["a": .integer(2)])
    }

    @Test func `what an outbox has is shown until the service says what it has`() {
        var copy = LayerCopy()
        copy.write(["a": .integer(1)])
        copy.preload(
            ["a", "b"].map { Outbox.Write(key: $0, value: .integer(5), isHost: false, time: 7, generation: 0) })
        #expect(copy.visible == ["a": .integer(1), "b": .integer(5)])
        // What was shown was set before, although its clock was ahead.
        copy.write(["b": .integer(6)], at: 5)
        #expect(copy.time("b") == 8 && copy.visible["b"] == .integer(6))
        _ = copy.loaded(1, isComplete: true, [:])
        #expect(copy.visible == ["a": .integer(1), "b": .integer(6)])
    }

    @Test func `what a domain was emptied of isn't shown again by an outbox`() {
        var copy = LayerCopy()
        let outbox = [Outbox.Write(key: "a", value: .integer(5), isHost: false, time: 7, generation: 0)]
        copy.write(["a": .integer(5)])
        copy.write(["a": nil, "b": .integer(1)], isWhole: true, replacingAll: true)
        copy.preload(outbox)
        #expect(copy.visible == ["b": .integer(1)])
        copy.write(["b": nil], isWhole: true, replacingAll: true)
        copy.preload(outbox)
        #expect(copy.visible.isEmpty)
        #expect(copy.loaded(1, isComplete: true, ["a": .integer(5)]).isSuperset(of: ["a"]))
        #expect(copy.visible.isEmpty)
    }

    @Test func `what is sent after the service went names the generation that was known, and what changed since wins`()
    {
        var copy = LayerCopy()
        _ = copy.loaded(5, isComplete: true, ["a": .integer(0)])
        copy.write(["a": .integer(1)])
        _ = copy.nextCall()
        copy.lost()
        copy.write(["b": .integer(1)])
        #expect(copy.known("a") == 5 && copy.known("b") == 5)
        _ = copy.loaded(9, isComplete: true, ["a": .integer(7)])
        copy.write(["c": .integer(1)], ticket: 1)
        #expect(
            copy.nextCall()
                == LayerCopy.Call(changes: ["a": .integer(1), "b": .integer(1)], since: 5, isIndivisible: false))
        #expect(copy.acknowledged(10).isEmpty && copy.nextCall() == nil && copy.visible["a"] == .integer(1))
        // A snapshot from before the reply says nothing about the call.
        _ = copy.loaded(9, isComplete: false, [:])
        #expect(copy.nextCall() == nil)
        #expect(copy.loaded(10, isComplete: false, ["b": .integer(1)]) == ["a", "b"])
        #expect(copy.visible == ["a": .integer(7), "b": .integer(1), "c": .integer(1)])
        #expect(copy.nextCall() == LayerCopy.Call(changes: ["c": .integer(1)], since: nil, isIndivisible: true))
        #expect(copy.acknowledged(11) == [1] && copy.isSettled)
    }

    @Test func `a later write does not lose to an earlier one of the same process whose answer was lost`() {
        for isWhole in [false, true] {
            var copy = LayerCopy()
            _ = copy.loaded(5, isComplete: true, [:])
            copy.write(["a": .integer(1), "b": .integer(1)], isWhole: isWhole)
            _ = copy.nextCall()
            copy.write(["c": .integer(1)])
            copy.lost()
            copy.write(["a": .integer(2), "b": .none])
            // The service has applied the call.
            _ = copy.loaded(6, isComplete: true, ["a": .integer(1), "b": .integer(1)])
            var sent: [Text: UInt64] = [:]
            while let call = copy.nextCall() {
                for key in call.changes.keys { sent[key] = call.since }
                _ = copy.acknowledged(7)
                _ = copy.loaded(7, isComplete: true, ["a": .integer(2), "c": .integer(1)])
            }
            #expect(sent == ["a": 6, "b": 6, "c": 5])
            #expect(copy.isSettled && copy.visible == ["a": .integer(2), "c": .integer(1)])
        }
    }

    @Test func `a whole write whose answer was lost loses to what another process set since`() {
        var copy = LayerCopy()
        _ = copy.loaded(5, isComplete: true, ["a": .integer(1), "b": .integer(1)])
        copy.write(["a": .none, "b": .none], isWhole: true, ticket: 1)
        _ = copy.nextCall()
        copy.lost()
        // The service has applied the call, and another process has set b.
        _ = copy.loaded(7, isComplete: true, ["b": .integer(7)])
        #expect(copy.nextCall() == LayerCopy.Call(changes: ["b": .none], since: 5, isIndivisible: true))
        #expect(copy.acknowledged(7).isEmpty)
        _ = copy.loaded(7, isComplete: true, ["b": .integer(7)])
        #expect(copy.nextCall() == LayerCopy.Call(changes: ["a": .none], since: 7, isIndivisible: true))
        #expect(copy.acknowledged(7) == [1])
        _ = copy.loaded(7, isComplete: true, ["b": .integer(7)])
        #expect(copy.isSettled && copy.visible == ["b": .integer(7)])
    }

    @Test func `a whole write of nothing may be late`() {
        var copy = LayerCopy()
        copy.write([:], isWhole: true, replacingAll: true, ticket: 1)
        _ = copy.loaded(5, isComplete: true, [:])
        _ = copy.nextCall()
        copy.lost()
        _ = copy.loaded(5, isComplete: true, [:])
        #expect(copy.nextCall() == LayerCopy.Call(changes: [:], since: nil, isIndivisible: true))
        #expect(copy.acknowledged(5) == [1] && copy.isSettled)
    }

    @Test func `what was answered is not sent again when the service goes before it is known what won`() {
        var copy = LayerCopy()
        _ = copy.loaded(5, isComplete: true, [:])
        copy.write(["a": .integer(1)])
        copy.lost()
        _ = copy.loaded(6, isComplete: true, ["a": .integer(7)])
        _ = copy.nextCall()
        _ = copy.acknowledged(6)
        copy.lost()
        #expect(copy.isSettled && copy.pending.isEmpty)
        _ = copy.loaded(6, isComplete: true, ["a": .integer(7)])
        #expect(copy.visible == ["a": .integer(7)] && copy.nextCall() == nil)
    }

    /// A service that applies and refuses calls, has other writers, and goes away before or after it applies a call.
    private struct ModelService {
        var values: [Text: Value] = [:]
        var generation: UInt64 = 1
        private var changed: [Text: UInt64] = [:]

        mutating func set(_ key: Text, _ value: Value?) {
            generation += 1
            (values[key], changed[key]) = (value, generation)
        }

        mutating func take(_ call: LayerCopy.Call) {
            for (key, value) in call.changes where changed[key, default: 0] <= call.since ?? .max { set(key, value) }
        }
    }

    @Test(arguments: 0..<50)
    func `when all is answered the copy is what the service has`(seed: UInt64) {
        var random = SplitMix(seed: seed)
        var copy = LayerCopy()
        var service = ModelService()
        let keys: [Text] = ["a", "b", "c"]
        func anything() -> Value? {
            Bool.random(using: &random) ? .integer(Int64.random(in: 0..<9, using: &random)) : nil
        }
        func load() { _ = copy.loaded(service.generation, isComplete: true, service.values) }
        load()
        for step in 0..<400 {
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1: copy.write([keys.randomElement(using: &random)!: anything()], isWhole: step.isMultiple(of: 7))
            case 2:
                service.set(keys.randomElement(using: &random)!, anything())
                if Bool.random(using: &random) { load() }
            case 3:
                if let call = copy.nextCall(), Bool.random(using: &random) { service.take(call) }
                copy.lost()
                if Bool.random(using: &random) { service.set(keys.randomElement(using: &random)!, anything()) }
                load()
            default:
                guard let call = copy.nextCall() else { continue }
                if Int.random(in: 0..<4, using: &random) == 0 {
                    _ = copy.refused()
                } else {
                    service.take(call)
                    _ = copy.acknowledged(service.generation)
                    if call.since != nil { load() }
                }
            }
        }
        load()
        while let call = copy.nextCall() {
            service.take(call)
            _ = copy.acknowledged(service.generation)
            load()
        }
        #expect(copy.isSettled && copy.visible == service.values)
    }

    @Test(arguments: 0..<50)
    func `what a process alone writes last is what the service has, however often it goes`(seed: UInt64) {
        var random = SplitMix(seed: seed)
        var copy = LayerCopy()
        var service = ModelService()
        var written: [Text: Value] = [:]
        let keys: [Text] = ["a", "b", "c"]
        func load() { _ = copy.loaded(service.generation, isComplete: true, service.values) }
        func answer(_ call: LayerCopy.Call) {
            service.take(call)
            _ = copy.acknowledged(service.generation)
            if call.since != nil { load() }
        }
        load()
        for step in 0..<400 {
            switch Int.random(in: 0..<5, using: &random) {
            case 0, 1:
                let key = keys.randomElement(using: &random)!
                let value: Value? = Int.random(in: 0..<4, using: &random) == 0 ? nil : .integer(Int64(step))
                written[key] = value
                copy.write([key: value], isWhole: step.isMultiple(of: 11))
            case 2:
                if let call = copy.nextCall(), Bool.random(using: &random) { service.take(call) }
                copy.lost()
                if Bool.random(using: &random) { copy.write(["a": .integer(-1)]) } else { continue }
                written["a"] = .integer(-1)
            case 3: load()
            default: if let call = copy.nextCall() { answer(call) }
            }
        }
        load()
        while let call = copy.nextCall() { answer(call) }
        #expect(copy.isSettled && service.values == written && copy.visible == written)
    }
}
