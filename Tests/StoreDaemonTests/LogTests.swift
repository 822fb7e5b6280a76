// SPDX-License-Identifier: Apache-2.0

import Logging
import Replication
import Testing

@testable import StoreDaemon

/// Which lines the journal gets, and how often.
@Suite struct LogTests {
    private static let minute: UInt64 = 60_000_000

    @Test func `each change of an account's state has one line, with the user's name`() {
        var log = AccountLog()
        func note(_ error: RemoteError?, _ minute: UInt64) -> String? {
            log.note(error, ofUser: "ada (1000)", minute * Self.minute)?.text
        }
        #expect(note(nil, 0) == nil)
        let refused = RemoteError(.unauthorized, "the server refuses the password")
        #expect(
            note(refused, 1)
                == "The account of ada (1000): the credentials are refused: the server refuses the password")
        #expect(note(refused, 2) == nil)
        #expect(note(RemoteError(.unauthorized, "other words"), 3) == nil)
        #expect(note(RemoteError(.full, "no space"), 4)?.contains("the remote is full") == true)
        #expect(note(nil, 5) == "The account of ada (1000) works again.")
        #expect(note(nil, 6) == nil)
    }

    @Test func `a remote that comes and goes all the time fills no journal`() {
        var log = AccountLog()
        let away = RemoteError(.unavailable, "away")
        let lines = (0..<600 as Range<UInt64>).compactMap { second in
            log.note(second.isMultiple(of: 2) ? away : nil, ofUser: "ada", second * 1_000_000)
        }
        #expect(lines.count == 12)
        let later = log.note(away, ofUser: "ada", 61 * Self.minute)
        #expect(later?.text.contains("588 changes before this one were not logged") == true)
    }

    @Test func `who signs in and out all the time fills no journal, and hides nothing else`() {
        var log = AccountLog()
        let lines = (0..<600 as Range<UInt64>).compactMap { log.note(act: "ada signed in.", $0 * 1_000_000)?.text }
        #expect(lines == Array(repeating: "ada signed in.", count: 12))
        #expect(log.note(RemoteError(.unavailable, "away"), ofUser: "ada", 600_000_000) != nil)
        let later = log.note(act: "ada signed out.", 61 * Self.minute)?.text
        #expect(later == "ada signed out. (588 lines before this one were not logged.)")
        for _ in 0..<12 { _ = log.note(act: "ada signed in.", 61 * Self.minute) }
        let last = log.note(act: "ada signed out.", 122 * Self.minute)?.text
        #expect(last == "ada signed out. (One line before this one was not logged.)")
    }

    @Test func `refused writes have a line a minute for each user, and the caller's slips have none`() {
        var log = RefusalLog()
        let quota = "org.example.UbiquitousStore.Error.QuotaExceeded"
        #expect(log.note(quota, "full", ofUser: 4_000_000, 0) == "A call of the user 4000000 was refused: full")
        #expect(log.note(quota, "full", ofUser: 4_000_000, 1) == nil)
        #expect(log.note(quota, "full", ofUser: 4_000_001, 2) != nil)
        #expect(log.note("org.freedesktop.DBus.Error.InvalidArgs", "x", ofUser: 4_000_002, 3) == nil)
        let next = log.note(quota, "full", ofUser: 4_000_000, Self.minute)
        #expect(next?.hasSuffix("(Since the last such line, 1 more were.)") == true)
    }

    @Test func `a problem that each call or cycle meets has a line a minute for each user, and hides no refusal`() {
        var log = RefusalLog()
        let lines = (0..<600 as Range<UInt64>).compactMap { log.note(problem: "full", ofUser: 7, $0 * 100_000) }
        #expect(lines == ["full"])
        #expect(log.note(problem: "full", ofUser: 8, 1) == "full")
        #expect(log.note("busy", ofUser: 7, 1) != nil)
        let next = log.note(problem: "full", ofUser: 7, Self.minute)
        #expect(next == "full (599 lines before this one were not logged.)")
    }
}
