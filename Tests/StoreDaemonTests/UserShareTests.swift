// SPDX-License-Identifier: Apache-2.0

import Replication
import SDBus
import Testing

@testable import StoreDaemon

/// How much users may leave unread together. The bus stops reading from the service, for all clients, at 127 MiB.
@BusActor
struct UserShareTests {
    // What else takes memory has a limit of its own.
    private let pool = SharePool(within: ServiceMemory(limit: 1 << 30))
    private let mebibyte = 1 << 20

    private func user() -> UserShare { UserShare(UserBounds(), of: pool) }

    /// Leaves as many answers unread as a user may, and returns their bytes.
    private func fill(_ user: UserShare, with answer: Int) -> Int {
        var unread = 0
        while user.hasRoom(for: answer) {
            user.count(answer)
            unread += answer
        }
        return unread
    }

    @Test(arguments: [64 << 10, 1 << 20, 5 << 20, 16 << 20])
    func `however many users leave answers unread, they have 80 MiB together`(answer: Int) {
        let users = (0..<64).map { _ in user() }
        var unread = 0
        for _ in 0..<3 {
            for user in users { unread += fill(user, with: answer) }
        }
        #expect(unread <= 80 * mebibyte)
        withExtendedLifetime(users) {}
    }

    @Test func `the largest answer has room beside what one user leaves unread`() {
        let (hostile, other) = (user(), user())
        #expect(fill(hostile, with: mebibyte) == UserShare.limit)
        #expect(other.hasRoom(for: 16 * mebibyte))
    }

    @Test func `ordinary answers have room beside what eight users leave unread`() {
        let hostile = (0..<8).map { _ in user() }
        for user in hostile { _ = fill(user, with: 16 << 10) }
        #expect(user().hasRoom(for: mebibyte))
        withExtendedLifetime(hostile) {}
    }

    @Test func `what was read makes room again`() {
        let user = user()
        let unread = fill(user, with: mebibyte)
        #expect(!user.hasRoom(for: mebibyte) && user.canRefuse)
        user.count(-unread)
        #expect(fill(user, with: mebibyte) == unread)
    }

    @Test func `however many users have calls waiting, these hold 48 MiB together, and two that aren't measured`() {
        let users = (0..<64).map { _ in user() }
        var (held, large) = (0, 0)
        for size in [2 << 20, 100 << 10] {
            for user in users {
                while (try? user.hold(.bytes(size))) != nil { held += size }
            }
        }
        for user in users where (try? user.hold(.large)) != nil {
            #expect(!user.mayHoldLarge)
            large += 1
        }
        #expect(held > 32 * mebibyte && held <= 48 * mebibyte)
        #expect(large == 2)
    }

    @Test func `what waits no more makes room for others' calls`() throws {
        let (first, second, third) = (user(), user(), user())
        try first.hold(.large)
        try second.hold(.large)
        #expect(!third.mayHoldLarge)
        first.release(.large)
        #expect(third.mayHoldLarge && first.mayHoldLarge && !second.mayHoldLarge)
        try first.hold(.bytes(UserShare.heldLimit))
        #expect(throws: BusError.self) { try first.hold(.bytes(1)) }
        first.release(.bytes(UserShare.heldLimit))
        try first.hold(.bytes(1))
    }

    @Test func `a share goes with the last client, and not while its user rests`() async {
        let user = user()
        await withCheckedContinuation { continuation in
            user.whenUnused = { continuation.resume() }
            user.join()
            user.join()
            user.leave()
            user.rest.note(LongCallPause.allowance)
            user.leave()
            #expect(user.rest.isUnderWay)
        }
        #expect(!user.rest.isUnderWay)
    }

    @Test func `a call that took the processor for long has its user rest`() {
        let user = user()
        user.rest.note(LongCallPause.allowance - 1)
        #expect(!user.rest.isUnderWay)
        user.rest.note(LongCallPause.shortest)
        #expect(user.rest.isUnderWay)
    }

    @Test(arguments: [LongCallPause.shortest, LongCallPause.allowance, 10 * LongCallPause.allowance])
    func `what can't wait goes on during a rest until it takes long itself`(microseconds: UInt64) {
        let user = user()
        #expect(user.rest.allowsUrgent)
        user.rest.note(LongCallPause.allowance)
        user.rest.note(LongCallPause.shortest - 1)
        #expect(user.rest.isUnderWay && user.rest.allowsUrgent)
        user.rest.note(microseconds)
        #expect(user.rest.isUnderWay && !user.rest.allowsUrgent)
    }

    @Test func `calls that took less count together, unless others don't notice them`() {
        let user = user()
        for _ in 0..<100 { user.rest.note(LongCallPause.shortest - 1) }
        #expect(!user.rest.isUnderWay)
        // Time passes meanwhile, which the user is granted a part of.
        for _ in 0..<100 { user.rest.note(LongCallPause.shortest) }
        #expect(user.rest.isUnderWay)
    }

    @Test func `short calls count in a burst, and not with pauses between`() {
        let user = user()
        for number in 0..<200 as Range<UInt64> { user.note(LongCallPause.shortest - 1, inBurst: number) }
        #expect(!user.rest.isUnderWay)
        for _ in 0..<200 { user.note(LongCallPause.shortest / 4, inBurst: 200) }
        #expect(user.rest.isUnderWay)
    }

    @Test func `a user who takes a little now and then doesn't rest`() async throws {
        let user = user()
        for _ in 0..<5 {
            user.rest.note(LongCallPause.allowance / 2)
            #expect(!user.rest.isUnderWay)
            try await Task.sleep(for: .microseconds(LongCallPause.allowance * 5 / 2))
        }
    }
}
