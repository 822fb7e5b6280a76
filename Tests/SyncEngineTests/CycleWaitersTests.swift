// SPDX-License-Identifier: Apache-2.0

import Replication
import Testing

@testable import SyncEngine

/// Which calls wait for which sync cycle.
@Suite struct CycleWaitersTests {
    private static let failure = RemoteError(.unavailable, "It failed.")

    /// Returns the answer to a call that waits while cycles begin and end.
    private func answer(_ run: (inout CycleWaiters) -> Void) async -> Result<Void, RemoteError> {
        var waiters = CycleWaiters()
        return await withCheckedContinuation { continuation in
            waiters.add(continuation)
            run(&waiters)
        }
    }

    private func fails(_ run: (inout CycleWaiters) -> Void) async -> Bool {
        if case .failure(Self.failure) = await answer(run) { true } else { false }
    }

    @Test func `a call is answered by the cycle that begins after it, and by no earlier one`() async {
        let isLate = await fails {
            $0.endCycle(.success(()))
            $0.beginCycle()
            $0.endCycle(.failure(Self.failure))
        }
        #expect(isLate)
    }

    @Test func `a call that an interrupted cycle would have answered waits for the next`() async {
        let isLate = await fails {
            $0.beginCycle()
            $0.endCycle(nil)
            let isWaiting = !$0.isEmpty
            #expect(isWaiting)
            $0.beginCycle()
            $0.endCycle(.failure(Self.failure))
        }
        #expect(isLate)
    }

    @Test func `without a next cycle, calls fail that wait for it, and with none under way, all do`() async {
        let isRefused = await fails { $0.failWaiting(Self.failure) }
        #expect(isRefused)
        let isAnswered = await fails {
            $0.beginCycle()
            $0.failAll(Self.failure)
        }
        #expect(isAnswered)
    }
}
