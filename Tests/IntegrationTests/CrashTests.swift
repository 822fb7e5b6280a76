// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import SDBus
import StoreBus
import Synchronization
import Testing
import UbiquitousStoreTesting

/// `kill -9` while clients write.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct CrashTests {
    /// What the service has acknowledged to one writer.
    private struct Acknowledged {
        var value: Int64 = 0
        var generation: UInt64 = 0
    }

    @Test func `of a hundred kills under load none takes an acknowledged write, and no generation goes back`()
        async throws
    {
        try await withMachine { machine in
            let writers = 3
            var known = [Acknowledged](repeating: Acknowledged(), count: writers)
            var generation: UInt64 = 0
            var written: Int64 = 0
            for round in 0..<100 {
                let stores = try (0..<writers).map { _ in try machine.store() }
                var isOver = false
                var answers = 0
                let tasks = (0..<writers).flatMap { writer in
                    // Each writer has several calls under way; the answers come in the order of the calls.
                    (0..<4).map { _ in
                        Task { @BusActor in
                            while !isOver {
                                written += 1
                                let value = written
                                guard
                                    let answer = try? await stores[writer].apply([
                                        "writer \(writer)": .integer(value), "copy \(writer)": .integer(value),
                                    ])
                                else { return }
                                known[writer].value = max(known[writer].value, value)
                                known[writer].generation = max(known[writer].generation, answer)
                                answers += 1
                            }
                        }
                    }
                }
                try await eventually("writes are answered") { answers > round % 40 }
                machine.device.kill()
                isOver = true
                for task in tasks { await task.value }
                try await machine.device.start()
                let snapshot = try await machine.store().snapshot()
                for writer in 0..<writers {
                    guard case .integer(let value) = snapshot.values[Text("writer \(writer)")] ?? .integer(0) else {
                        return
                    }
                    #expect(value >= known[writer].value, "round \(round)")
                    #expect(snapshot.values[Text("copy \(writer)")] ?? .integer(0) == .integer(value), "round \(round)")
                    #expect(snapshot.generation >= known[writer].generation, "round \(round)")
                    known[writer].value = value
                }
                #expect(snapshot.generation >= generation, "round \(round)")
                generation = snapshot.generation
            }
            #expect(!machine.device.log.contains("damaged"))
        }
    }

    @Test func `what Synchronize has answered for is there after a kill`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            for round in 0..<Int64(10) {
                try await store.set("key", .integer(round))
                try await store.synchronize()
                try await machine.device.restart()
                #expect(try await store.value("key") == .integer(round))
            }
        }
    }
}
