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
        #expect(outboxes.fill([domain], writes: { _ in [taken, pending] }, pending: { _ in [pending] }))
        #expect(outboxes.file(domain)?.read()?.writes == [pending])
        outboxes.removeTaken(domain) { [] }
        #expect(outboxes.file(domain)?.exists == false)
        #expect(!outboxes.hasBoxed(domain))
    }

    @Test func `what another process has delivered is told once`() {
        let outboxes = Outboxes(directory: directory)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let writes = [write("a", .integer(1)), write("b", nil)]
        #expect(outboxes.fill([domain], writes: { _ in writes }, pending: { _ in writes }))
        outboxes.file(domain)?.remove([writes[0]])
        #expect(outboxes.delivered(domain) == [writes[0]])
        #expect(outboxes.delivered(domain).isEmpty)
        #expect(outboxes.hasBoxed(domain))
    }

    @Test func `without a place nothing is kept`() {
        let outboxes = Outboxes(directory: nil)
        #expect(!outboxes.fill([domain], writes: { _ in [write("a", .integer(1))] }, pending: { _ in [] }))
        #expect(outboxes.fill([domain], writes: { _ in [] }, pending: { _ in [] }))
        #expect(outboxes.delivered(domain).isEmpty)
    }
}
