// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Testing

@testable import SDBus

/// Connections that are released while the loop's thread uses them.
@Suite(.timeLimit(.minutes(30)))
struct LifetimeTests {
    @Test func `a connection may be released on any thread, at any moment`() async {
        // In a process of its own, because the loop does nothing else meanwhile.
        await #expect(processExitsWith: .success) {
            // The loop turns all the time, so that it often prepares to wait when a connection is released.
            let turning = EventLoop.task {
                while !Task.isCancelled { await Task.yield() }
            }
            await withTaskGroup { group in
                for _ in 0..<4 {
                    group.addTask {
                        for _ in 0..<5000 {
                            // Made on the loop's thread, and released on this one.
                            let pair = await EventLoop.task { try? BusConnection.pair() }.value
                            #expect(pair != nil)
                        }
                    }
                }
            }
            turning.cancel()
            await turning.value
        }
    }
}
