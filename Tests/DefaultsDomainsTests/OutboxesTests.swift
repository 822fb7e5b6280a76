// SPDX-License-Identifier: Apache-2.0

import DefaultsDomains
import Foundation
import PropertyList
import Testing

struct OutboxesTests {
    private let directory = FileManager.default.temporaryDirectory.path + "/outboxes-\(UUID())"
    private let domain: Text = "org.example.Notes"

    private func write(_ key: Text, _ value: Value?) -> Outbox.Write {
        Outbox.Write(key: key, value: value, isHost: false, time: 1, generation: 0)
    }

    @Test func `what the service has taken while the file was written is taken out`() {
        let outboxes = Outboxes(directory: directory)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let (taken, pending) = (write("a", .integer(1)), write("b", .integer(2)))
        var answers = [[taken, pending], [pending]]
        #expect(outboxes.fill([domain]) { _ in answers.removeFirst() })
        #expect(kept() == [pending])
        outboxes.removeTaken(domain) { _ in [] }
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
        outboxes.removeTaken(domain) { _ in [] }
        #expect(kept() == [ended])
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
