// SPDX-License-Identifier: Apache-2.0

import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

@testable import StoreDaemon

/// Calls that come faster than they are answered.
@BusActor
struct TurnsTests {
    private let pool = SharePool(Turns(longestWait: .seconds(3600)))
    private let bus = QuietBus()

    init() { pool.turns.ask = { [bus] in bus.questions.append($0) } }

    /// A bus that answers when it is told to.
    @BusActor
    private final class QuietBus {
        var questions: [@BusActor () -> Void] = []
        nonisolated init() {}
        func answer() { questions.removeFirst()() }
    }

    private func user() -> UserShare { UserShare(UserBounds(), of: pool) }

    /// Makes calls, and returns how many may be answered as they come.
    private func call(_ count: Int, _ user: UserShare, canWait: Bool = true) -> Int {
        (0..<count).count { _ in pool.turns.count(user, canWait: canWait) }
    }

    @Test func `few calls are answered as they come, and the bus isn't asked`() {
        #expect(call(32, user()) == 32)
        #expect(call(31, user()) == 31)
        #expect(bus.questions.isEmpty)
    }

    @Test func `until the bus answers, only some of a user's calls are answered, and fewer beside others'`() {
        let (alone, other) = (user(), user())
        #expect(call(64, alone) == 64)
        #expect(bus.questions.count == 1)
        #expect(call(10_000, alone) == Turns.mostAlone)
        #expect(call(10_000, other) == Turns.mostBesideOthers)
        #expect(alone.isInLine && other.isInLine)
        #expect(bus.questions.count == 1)
    }

    @Test func `calls that take long are fewer`() {
        let (alone, other) = (user(), user())
        #expect(call(65, alone) == 65)
        alone.note(Turns.longestAlone - 1, inBurst: 0)
        #expect(call(1, alone) == 1)
        alone.note(1, inBurst: 0)
        #expect(call(1, alone) == 0)
        #expect(call(1, other) == 1)
        other.note(Turns.longestBesideOthers, inBurst: 0)
        #expect(call(1, other) == 0)
    }

    @Test func `calls that can't wait don't wait for a turn`() {
        let user = user()
        #expect(call(64 + 3000, user) == 64 + Turns.mostAlone)
        #expect(user.isInLine)
        #expect(call(10_000, user, canWait: false) == Turns.mostUrgent - 3000)
        bus.answer()
        #expect(call(10, user, canWait: false) == 10)
        #expect(call(10, user) == 0)
    }

    @Test func `users take turns, and the bus is asked before each`() async throws {
        let users = [user(), user()]
        for user in users { _ = call(10_000, user) }
        #expect(users[0].isInLine && users[1].isInLine)
        bus.answer()
        try await eventually("the first has had its turn") { @BusActor in !users[0].isInLine }
        #expect(users[1].isInLine)
        #expect(bus.questions.count == 1)
        bus.answer()
        try await eventually("so has the second") { @BusActor in !users[1].isInLine }
        #expect(bus.questions.isEmpty)
    }

    @Test func `a bus that doesn't answer holds nobody up for ever`() async throws {
        let pool = SharePool()
        pool.turns.ask = { _ in }
        let user = UserShare(UserBounds(), of: pool)
        for _ in 0..<10_000 { _ = pool.turns.count(user, canWait: true) }
        #expect(user.isInLine)
        try await eventually("the turn comes") { @BusActor in !user.isInLine }
    }
}
