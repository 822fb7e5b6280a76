// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Testing

@testable import UbiquitousStore

struct LocalCopyTests {
    // MARK: At random

    @Test func `whatever happens, the copy becomes what the service has, and the app was told of it`() {
        var announced: [UInt32: Int] = [:]
        for seed in 0..<1000 as Range<UInt64> {
            var simulation = LocalCopySimulation(seed: seed)
            let failures = simulation.run(80)
            if let failure = failures.first {
                Issue.record("seed \(seed): \(failure)")
                return
            }
            announced.merge(simulation.announced, uniquingKeysWith: +)
        }
        // Otherwise the simulation has tested nothing.
        #expect(Set(announced.keys) == [0, 2, 3, 16] && announced.values.allSatisfy { $0 > 30 }, "\(announced)")
    }

    // MARK: One by one

    private func loadedCopy(_ values: [Text: Value] = [:]) -> LocalCopy {
        var copy = LocalCopy()
        _ = copy.linked()
        _ = copy.loaded(Snapshot(generation: 10, isComplete: true, values: values))
        return copy
    }

    private func write(_ changes: Changes, ticket: Ticket? = nil) -> Write {
        Write(changes, size: changes.reduce(0) { $0 + ($1.value?.size ?? 0) }, tickets: ticket.map { [$0] } ?? [])
    }

    private func announcements(_ actions: [LocalCopy.Action]) -> [Announcement] {
        actions.compactMap { if case .announce(let announcement) = $0 { announcement } else { nil } }
    }

    private func expectCall(
        _ copy: inout LocalCopy, _ expected: Changes?, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let call = copy.nextCall()
        #expect(call?.changes == expected, sourceLocation: sourceLocation)
    }

    /// The service leaves keys out where a subscriber has left too much unread.
    @Test func `a signal without keys announces what no other signal has named`() {
        var copy = loadedCopy(["a": 1, "b": 1, "c": 1])
        _ = copy.received(ExternalChange(reason: 0, keys: ["a"], generation: 11))
        _ = copy.received(ExternalChange(reason: 0, keys: [], generation: 12))
        _ = copy.received(ExternalChange(reason: 0, keys: ["c"], generation: 14))
        let changes = Snapshot(generation: 13, isComplete: false, values: ["a": 2, "b": 2, "c": 2])
        #expect(announcements(copy.loaded(changes)).map { $0.changes.map(\.key) } == [["a"]])
        let rest = announcements(copy.loaded(Snapshot(generation: 14, isComplete: false, values: [:])))
        #expect(rest.map { $0.changes.map(\.key) } == [["c"], ["b"]])
    }

    @Test func `a write is visible before it is sent, and those that come meanwhile go together`() {
        var copy = loadedCopy()
        _ = copy.write(write(["a": 1]))
        #expect(copy.visible["a"] == 1)
        expectCall(&copy, ["a": 1])
        for number in 2..<5 { _ = copy.write(write(["a": .integer(Int64(number))])) }
        _ = copy.write(write(["b": 1]))
        expectCall(&copy, nil)
        _ = copy.acknowledged(11)
        expectCall(&copy, ["a": 4, "b": 1])
    }

    @Test func `of writes that are refused together only the bad one goes back`() {
        var copy = loadedCopy(["bad": "before"])
        _ = copy.write(write(["x": 1]))
        _ = copy.nextCall()
        for (key, ticket) in [("a", 1), ("bad", 2), ("b", 3)] as [(Text, Ticket)] {
            _ = copy.write(write([key: 1], ticket: ticket))
        }
        _ = copy.acknowledged(11)
        let tooMuch = UbiquitousStoreError(.quotaExceeded, "too much")
        let all = copy.nextCall()
        #expect(all?.changes.count == 3)
        let together = announcements(copy.refused(tooMuch))
        #expect(together.isEmpty)
        #expect(copy.visible["bad"] == 1)
        expectCall(&copy, ["a": 1])
        _ = copy.acknowledged(12)
        expectCall(&copy, ["bad": 1])
        let told = announcements(copy.refused(tooMuch))
        #expect(told.map(\.reason) == [2] && told.first?.error?.code == .quotaExceeded)
        #expect(told.first?.changes == [KeyChange(key: "bad", old: 1, new: "before")])
        #expect(copy.visible["bad"] == "before")
        expectCall(&copy, ["b": 1])
    }

    @Test func `a refused write gives way to the one before of the same key, not to what was before both`() {
        var copy = loadedCopy()
        _ = copy.write(write(["x": 1]))
        _ = copy.nextCall()
        _ = copy.write(write(["a": 1]))
        _ = copy.write(write(["a": .data([UInt8](repeating: 0, count: 100))]))
        _ = copy.acknowledged(11)
        let tooMuch = UbiquitousStoreError(.quotaExceeded, "too much")
        _ = copy.nextCall()
        _ = copy.refused(tooMuch)
        expectCall(&copy, ["a": 1])
        _ = copy.acknowledged(12)
        _ = copy.nextCall()
        _ = copy.refused(tooMuch)
        #expect(copy.visible["a"] == 1 && copy.isSettled)
    }

    @Test func `a change from elsewhere does not show under a write that is on its way`() {
        var copy = loadedCopy(["a": 1])
        _ = copy.write(write(["a": 2]))
        _ = copy.nextCall()
        let signalled = announcements(copy.received(ExternalChange(reason: 0, keys: ["a"], generation: 11)))
        #expect(signalled.isEmpty)
        let loaded = announcements(copy.loaded(Snapshot(generation: 11, isComplete: false, values: ["a": 3])))
        #expect(loaded.isEmpty)
        #expect(copy.visible["a"] == 2)
        _ = copy.acknowledged(12)
        #expect(copy.visible["a"] == 2)
        // After the reply, a later change shows.
        _ = copy.received(ExternalChange(reason: 0, keys: ["a"], generation: 13))
        let told = announcements(copy.loaded(Snapshot(generation: 13, isComplete: false, values: ["a": 4])))
        #expect(told.first?.changes == [KeyChange(key: "a", old: 2, new: 4)])
    }

    @Test func `what came with another change's snapshot is announced by its own signal`() {
        var copy = loadedCopy()
        _ = copy.received(ExternalChange(reason: 16, keys: ["a"], generation: 11))
        let first = announcements(copy.loaded(Snapshot(generation: 12, isComplete: false, values: ["a": 1, "b": 1])))
        #expect(first.map(\.reason) == [16] && first.first?.changes.map(\.key) == ["a"])
        let signal = ExternalChange(reason: 0, keys: ["b"], generation: 12, originDevice: "laptop")
        let second = announcements(copy.received(signal))
        #expect(second.map(\.reason) == [0] && second.first?.originDevice == "laptop")
        let third = announcements(copy.received(signal))
        #expect(third.isEmpty)
    }

    @Test func `the end of the first download is announced though it changes nothing`() {
        var copy = loadedCopy()
        let told = announcements(copy.received(ExternalChange(reason: 1, keys: [], generation: 10)))
        #expect(told.map(\.reason) == [1] && told.first?.changes == [])
    }

    @Test func `an own refusal is announced once, and somebody else's too`() {
        var copy = loadedCopy()
        _ = copy.write(write(["a": 1]))
        _ = copy.nextCall()
        let refused = announcements(copy.refused(UbiquitousStoreError(.quotaExceeded, "too much")))
        #expect(refused.count == 1)
        let signal = ExternalChange(reason: 2, keys: ["a"], generation: 10)
        let (own, others) = (announcements(copy.received(signal)), announcements(copy.received(signal)))
        #expect(own.isEmpty && others.map(\.reason) == [2])
    }

    @Test func `what changed while the service was away is announced when it is back`() {
        var copy = loadedCopy(["a": 1, "b": 2])
        copy.lost()
        _ = copy.write(write(["b": 3]))
        guard case .fetch(since: 10)? = copy.linked().first else {
            Issue.record("it asks for what it missed")
            return
        }
        let told = announcements(copy.loaded(Snapshot(generation: 20, isComplete: true, values: ["b": 5, "c": 6])))
        #expect(told.map(\.reason) == [0])
        #expect(told.first?.changes == [KeyChange(key: "a", old: 1, new: nil), KeyChange(key: "c", old: nil, new: 6)])
        #expect(copy.visible == ["b": 3, "c": 6])
        expectCall(&copy, ["b": 3])
    }

    /// Returns a copy whose call was sent after generation 10, and which has found the service again since.
    private func copyInDoubt(_ changes: Changes) -> LocalCopy {
        var copy = loadedCopy(["a": 0])
        _ = copy.write(write(changes, ticket: 7))
        _ = copy.nextCall()
        copy.lost()
        _ = copy.linked()
        return copy
    }

    private func finished(_ actions: [LocalCopy.Action]) -> [Ticket] {
        actions.flatMap { if case .finish(let tickets, nil) = $0 { tickets } else { [] as [Ticket] } }
    }

    @Test func `a write that the service never got is sent again`() {
        let none = Snapshot(generation: 10, isComplete: false, values: [:])
        var copy = copyInDoubt(["a": 1])
        #expect(finished(copy.loaded(none)) == [])
        let call = copy.nextCall()
        #expect(call?.changes == ["a": 1] && call?.since == 10)
        #expect(finished(copy.acknowledged(11)) == [7])
    }

    @Test func `a write that was taken without an answer is not sent again`() {
        let taken = Snapshot(generation: 11, isComplete: false, values: ["a": 1])
        var copy = copyInDoubt(["a": 1])
        let actions = copy.loaded(taken)
        #expect(finished(actions) == [7] && announcements(actions).isEmpty)
        expectCall(&copy, nil)
    }

    @Test func `a write that was taken without an answer does not undo what another program wrote after it`() {
        let replaced = Snapshot(generation: 12, isComplete: false, values: ["a": 2])
        var copy = copyInDoubt(["a": 1])
        #expect(finished(copy.loaded(replaced)).isEmpty && copy.visible["a"] == 1)
        // The service decides, because the other value may be an earlier one of another device.
        let call = copy.nextCall()
        #expect(call?.changes == ["a": 1] && call?.since == 10)
        let actions = copy.acknowledged(12)
        #expect(finished(actions) == [7])
        #expect(announcements(actions).map(\.changes) == [[KeyChange(key: "a", old: 1, new: 2)]])
        expectCall(&copy, nil)
        #expect(copy.visible["a"] == 2 && copy.isSettled)
    }

    @Test func `a call of which one key was certainly not taken is sent again whole`() {
        let others = Snapshot(generation: 11, isComplete: false, values: ["a": 2])
        var copy = copyInDoubt(["a": 1, "b": 1])
        _ = copy.loaded(others)
        expectCall(&copy, ["a": 1, "b": 1])
    }

    @Test func `a value that nobody waited for is announced when it comes`() {
        var (patient, impatient) = (LocalCopy(), LocalCopy())
        impatient.readEarly()
        let snapshot = Snapshot(generation: 10, isComplete: true, values: ["a": 1])
        _ = patient.linked()
        #expect(!patient.isReadable)
        let unasked = announcements(patient.loaded(snapshot))
        #expect(unasked.isEmpty)
        _ = impatient.linked()
        #expect(impatient.isReadable)
        let told = announcements(impatient.loaded(snapshot))
        #expect(told.first?.changes == [KeyChange(key: "a", old: nil, new: 1)])
    }

    @Test func `a write of what somebody else wrote just before hides nothing else that they wrote`() {
        var copy = loadedCopy()
        _ = copy.write(write(["a": 1]))
        _ = copy.nextCall()
        // Another program set a and b together, at 11; our write then changed nothing.
        _ = copy.acknowledged(11)
        guard
            case .fetch(since: 10)? = copy.received(ExternalChange(reason: 0, keys: ["a", "b"], generation: 11)).first
        else {
            Issue.record("it asks for what they wrote")
            return
        }
    }

    // MARK: Waiting writes

    @Test func `twenty thousand writes of a key wait as few, in the order of the last`() {
        var copy = LocalCopy()
        for number in 0..<20_000 { _ = copy.write(write(["a": .integer(Int64(number))])) }
        _ = copy.write(write(["b": 1]))
        #expect(copy.queue.writes.count < 200)
        #expect(copy.visible == ["a": 19_999, "b": 1])
    }

    @Test func `growing values wait in no more memory than a store has`() {
        var copy = LocalCopy()
        for size in 1..<3000 { _ = copy.write(write(["a": .data([UInt8](repeating: 0, count: size))])) }
        #expect(copy.queue.writes.reduce(0) { $0 + $1.size } <= WriteBacklog.maximumSize)
        #expect(copy.visible["a"]?.size == 2999)
    }

    @Test func `more than a store can hold is refused while it waits`() {
        var copy = LocalCopy()
        for number in 0..<WriteBacklog.maximumCount { _ = copy.write(write([Text("\(number)"): 1])) }
        let told = announcements(copy.write(write(["one more": 1])))
        #expect(told.first?.error?.code == .quotaExceeded && copy.visible["one more"] == nil)
        #expect(copy.visible.count == WriteBacklog.maximumCount)
    }

    @Test func `a write that is refused leaves the one that it would have replaced`() {
        var backlog = WriteBacklog()
        func data(_ size: Int) -> Value { .data([UInt8](repeating: 0, count: size)) }
        let writes = [write(["a": 1], ticket: 7)] + (["b", "c", "d"] as [Text]).map { write([$0: data(600_000)]) }
        let areTaken = writes.map { backlog.append($0) }
        let isTaken = backlog.append(write(["a": data(1_000_000)], ticket: 8))
        #expect(areTaken == [true, true, true, true] && !isTaken)
        #expect(backlog.value("a") == .some(.integer(1)))
        #expect(backlog.take().flatMap(\.tickets) == [7])
    }

    @Test func `who waits for a write that another one replaces is told with that`() {
        var backlog = WriteBacklog()
        for number in 0..<100 as Range<UInt64> {
            _ = backlog.append(write(["a": .integer(Int64(number))], ticket: number))
        }
        let taken = backlog.take()
        #expect(taken.count < 100 && Set(taken.flatMap(\.tickets)) == Set(0..<100))
    }
}
