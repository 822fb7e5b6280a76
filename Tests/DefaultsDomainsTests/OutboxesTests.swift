// SPDX-License-Identifier: Apache-2.0

import DefaultsDomains
import Files
import Foundation
import Glibc
import PropertyList
import Testing

struct OutboxesTests {
    private let directory = FileManager.default.temporaryDirectory.path + "/outboxes-\(UUID())"
    private let domain: Text = "org.example.Notes"

    private func write(_ key: Text, _ value: Value?) -> Outbox.Write {
        Outbox.Write(key: key, value: value, isHost: false, time: 1, generation: 0)
    }

    @Test func `what the service has taken while the file was written is taken out`() throws {
        let outboxes = Outboxes(directory: directory)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let (taken, pending) = (write("a", .integer(1)), write("b", .integer(2)))
        var answers = [[taken, pending], [pending]]
        #expect(outboxes.fill([domain]) { _ in answers.removeFirst() })
        #expect(kept() == [pending])
        try outboxes.update(domain) { _ in [] }
        #expect(outboxes.file(domain)?.exists == false)
        #expect(!outboxes.isFilled(domain))
    }

    @Test func `when nothing waits any more, nothing of it stays in the outbox`() {
        let outboxes = Outboxes(directory: directory)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        #expect(outboxes.fill([domain]) { _ in [write("a", .integer(1))] })
        // As at the end of a process that has not taken it out yet.
        #expect(outboxes.fill([domain]) { _ in [] })
        #expect(outboxes.file(domain)?.exists == false)
    }

    @Test func `what a process has put into an outbox is its own as long as it runs`() throws {
        let ended = write("a", .integer(1)), running = write("b", .integer(2))
        defer { try? FileManager.default.removeItem(atPath: directory) }
        #expect(Outboxes(directory: directory).fill([domain]) { _ in [ended] })
        let outboxes = Outboxes(directory: directory)
        #expect(outboxes.fill([domain]) { _ in [running] })
        let file = try #require(outboxes.file(domain))
        #expect(file.abandoned().map(\.key) == ["a"])
        #expect(kept() == [ended, running])
        // It takes out nothing of another one.
        try outboxes.update(domain) { _ in [] }
        #expect(kept() == [ended])
    }

    @Test func `what waits in an outbox follows what is pending, and nothing new gets in before it is filled again`()
        throws
    {
        let outboxes = Outboxes(directory: directory)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        #expect(outboxes.fill([domain]) { _ in [write("a", .integer(1)), write("b", .integer(1))] })
        try outboxes.update(domain) { _ in [write("a", nil), write("c", .integer(1))] }
        #expect(kept() == [write("a", nil)])
        #expect(outboxes.isFilled(domain))
    }

    @Test func `what another process has put in place of a write stays, though the clock was ahead`() {
        let (first, second) = (Outboxes(directory: directory), Outboxes(directory: directory))
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var early = write("a", .integer(1))
        early.time = .max / 2
        #expect(first.fill([domain]) { _ in [early] })
        #expect(second.fill([domain]) { _ in [write("a", .integer(2))] })
        #expect(first.fill([domain]) { _ in [early, write("b", .integer(1))] })
        #expect(kept() == [write("a", .integer(2)), write("b", .integer(1))])
        early.time += 1
        #expect(first.fill([domain]) { _ in [early] })
        #expect(kept() == [early])
    }

    @Test func `an outbox that another process keeps locked is changed later`() throws {
        let outboxes = Outboxes(directory: directory)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        #expect(outboxes.fill([domain]) { _ in [write("a", .integer(1))] })
        let lock = open("\(directory)/\(domain).lock", O_RDWR)
        #expect(flock(lock, LOCK_EX) == 0)
        #expect(throws: SystemError(EWOULDBLOCK)) { try outboxes.update(domain) { _ in [] } }
        #expect(outboxes.isFilled(domain) && kept()?.isEmpty == false)
        close(lock)
        try outboxes.update(domain) { _ in [] }
        #expect(!outboxes.isFilled(domain) && kept() == nil)
    }

    @Test func `a process whose lock others no longer see takes another one`() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        // The directory can't be made at first, and is replaced later.
        try Data().write(to: URL(filePath: directory))
        let outboxes = Outboxes(directory: directory)
        #expect(!outboxes.fill([domain]) { _ in [write("a", .integer(1))] })
        for _ in 0..<2 {
            try FileManager.default.removeItem(atPath: directory)
            #expect(outboxes.fill([domain]) { _ in [write("a", .integer(1))] })
            #expect(kept()?.count == 1 && outboxes.file(domain)?.abandoned().isEmpty == true)
        }
    }

    @Test(.enabled(if: geteuid() == 0, "it needs root, to give a directory away"))
    func `in another user's directory nothing is made`() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        #expect(chown(directory, 1234, 1234) == 0)
        #expect(!Outboxes(directory: directory).fill([domain]) { _ in [write("a", .integer(1))] })
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
    }

    @Test func `without a place nothing is kept`() {
        let outboxes = Outboxes(directory: nil)
        #expect(!outboxes.fill([domain]) { _ in [write("a", .integer(1))] })
        #expect(outboxes.fill([domain]) { _ in [] })
    }

    /// Returns what the file has, without the numbers of processes.
    private func kept() -> [Outbox.Write]? {
        OutboxFile(domain: domain, directory: directory).read()?.writes.map {
            var write = $0
            write.owner = 0
            return write
        }
    }
}
