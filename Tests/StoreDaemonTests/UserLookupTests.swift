// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Files
import Glibc
import Synchronization
import Testing

@testable import StoreDaemon

/// Looking up users on the bus thread, where a slow lookup delays every caller.
struct UserLookupTests {
    private static let ada = UserEntry(name: "ada", uid: 4_000_000)

    @Test func `users of the machine are known by number and by name, and nobody is asked`() {
        let lookup = UserLookup { key in
            Issue.record("\(key) was asked for")
            return .nobody
        }
        let root = UserEntry.Answer.known(UserEntry(name: "root", uid: 0))
        #expect(lookup.entry(.uid(0)) == root)
        #expect(lookup.entry(.name("root")) == root)
    }

    @Test func `the system is asked for all others`() {
        let lookup = UserLookup(patience: 60_000) { $0 == .uid(Self.ada.uid) ? .known(Self.ada) : .nobody }
        #expect(lookup.entry(.uid(Self.ada.uid)) == .known(Self.ada))
        #expect(lookup.entry(.name("nobody of that name")) == .nobody)
    }

    @Test func `what takes long is waited for once, asked for once, and known when it has come`() {
        let gate = DispatchSemaphore(value: 0)
        let asked = Mutex<[UserEntry.Key]>([])
        let lookup = UserLookup(patience: 1) { key in
            asked.withLock { $0.append(key) }
            gate.wait()
            return .known(Self.ada)
        }
        #expect(lookup.entry(.uid(Self.ada.uid)) == .unknown)
        // None of these may wait.
        for uid in 4_000_001..<4_010_000 as Range<UInt32> { #expect(lookup.entry(.uid(uid)) == .unknown) }
        gate.signal()
        var answer = UserEntry.Answer.unknown
        while answer == .unknown { answer = lookup.entry(.uid(Self.ada.uid)) }
        #expect(answer == .known(Self.ada))
        #expect(asked.withLock(\.self) == [.uid(Self.ada.uid)])
    }

    @Test func `many lookups that are only a little slow wait no longer in sum than one`() {
        // Each would be waited for; together they may take the patience of one, and a tenth of the time since.
        let lookup = UserLookup(patience: 2000) { _ in
            usleep(200_000)
            return .nobody
        }
        let answers = (0..<100 as Range<UInt32>).map { lookup.entry(.uid(4_000_000 + $0)) }
        #expect(answers.count { $0 == .nobody } < 30)
    }
}
