// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Synchronization
import Testing

@testable import StoreDaemon

/// Looking up users on the bus thread, where a slow lookup delays every caller.
struct UserLookupTests {
    private static let ada = UserEntry(name: "ada", uid: 4_000_000)

    @Test func `users of the machine are known by number and by name, and nobody is asked`() {
        let lookup = UserLookup { key in
            Issue.record("\(key) was asked for")
            return nil
        }
        let root = UserLookup.Answer.known(UserEntry(name: "root", uid: 0))
        #expect(lookup.entry(.uid(0)) == root)
        #expect(lookup.entry(.name("root")) == root)
    }

    @Test func `the system is asked for all others`() {
        let lookup = UserLookup(patience: 60_000) { $0 == .uid(Self.ada.uid) ? Self.ada : nil }
        #expect(lookup.entry(.uid(Self.ada.uid)) == .known(Self.ada))
        #expect(lookup.entry(.name("nobody of that name")) == .known(nil))
    }

    @Test func `what takes long is waited for once, asked for once, and known when it has come`() {
        let gate = DispatchSemaphore(value: 0)
        let asked = Mutex<[UserEntry.Key]>([])
        let lookup = UserLookup(patience: 1) { key in
            asked.withLock { $0.append(key) }
            gate.wait()
            return Self.ada
        }
        #expect(lookup.entry(.uid(Self.ada.uid)) == .late)
        // None of these may wait.
        for uid in 4_000_001..<4_010_000 as Range<UInt32> { #expect(lookup.entry(.uid(uid)) == .late) }
        gate.signal()
        var answer = UserLookup.Answer.late
        while answer == .late { answer = lookup.entry(.uid(Self.ada.uid)) }
        #expect(answer == .known(Self.ada))
        #expect(asked.withLock(\.self) == [.uid(Self.ada.uid)])
    }
}
