// SPDX-License-Identifier: Apache-2.0

import Replication
import Testing

@testable import Etcd

@Suite struct EtcdMemoryTests {
    private let origin = Origin(bits: 7)

    private func row(_ publication: UInt64, count: UInt64) -> EtcdDevice {
        EtcdDevice(RemoteDevice(identifier: "d1", name: "Ada"), publication: publication, count: count)
    }

    @Test func `what a process before this one published is the device's own, however late it arrives`() {
        var memory = EtcdMemory()
        #expect(memory.look(at: row(1, count: 5), under: origin, published: 5) == .asPublished)
        // The cluster was restored from a copy. Cursors detect that, not this memory.
        #expect(memory.look(at: row(2, count: 3), under: origin, published: 5) == .asPublished)
    }

    @Test func `a new process that finds less than its count publishes everything`() {
        for found in [row(1, count: 3), nil] {
            var memory = EtcdMemory()
            #expect(memory.look(at: found, under: origin, published: 5) == .missing)
            // It was on its way when the previous process ended, which looks the same as a restored cluster.
            #expect(memory.look(at: row(2, count: 5), under: origin, published: 5) == .missing)
            memory.needsRepublication = false
            #expect(memory.look(at: row(2, count: 5), under: origin, published: 5) == .asPublished)
        }
    }

    @Test func `what is published beyond the device's own count is a clone's`() {
        var memory = EtcdMemory()
        #expect(memory.look(at: row(0, count: 5), under: origin, published: 5) == .asPublished)
        #expect(memory.look(at: row(1, count: 6), under: origin, published: 5) == .foreign)
        memory.note(row(2, count: 6), under: origin)
        #expect(memory.look(at: row(2, count: 6), under: origin, published: 6) == .asPublished)
        #expect(memory.look(at: row(1, count: 6), under: origin, published: 6) == .foreign)
    }

    @Test func `a new process that finds more than its count has a clone`() {
        var memory = EtcdMemory()
        #expect(memory.look(at: row(1, count: 6), under: origin, published: 5) == .foreign)
    }

    @Test func `publications too old to be remembered one by one stay the device's own`() {
        var memory = EtcdMemory()
        #expect(memory.look(at: nil, under: origin, published: 0) == .asPublished)
        for count in 1...2000 as ClosedRange<UInt64> { memory.note(row(count, count: count), under: origin) }
        #expect(memory.look(at: row(1, count: 1), under: origin, published: 2000) == .asPublished)
        #expect(memory.look(at: row(5000, count: 1999), under: origin, published: 2000) == .foreign)
    }
}
