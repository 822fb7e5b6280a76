// SPDX-License-Identifier: Apache-2.0

import SDBus
import Testing
import UbiquitousStore

@testable import DefaultsDomains

/// Calls that an overloaded service refuses.
@BusActor
struct PatienceTests {
    private let patience = Patience(delays: [.zero, .zero])

    @Test(arguments: 0...4)
    func `a call that is refused for a while is made again, and one that stays refused fails`(refusals: Int) async {
        var calls = 0
        let answer = try? await patience.call {
            calls += 1
            if calls <= refusals { throw UbiquitousStoreError(.limitsExceeded, "The user's calls are too many.") }
            return "taken"
        }
        #expect(answer == (refusals <= 2 ? "taken" : nil))
        #expect(calls == min(refusals, 2) + 1)
    }

    @Test func `any other error counts at once`() async {
        var calls = 0
        await #expect(throws: UbiquitousStoreError.self) {
            try await patience.call {
                calls += 1
                throw UbiquitousStoreError(.quotaExceeded, "There is no room.")
            }
        }
        #expect(calls == 1)
    }
}
