// SPDX-License-Identifier: Apache-2.0

import StoreBus
import Testing

@testable import ubiquitous_store_notifier

struct TroubleTests {
    private func look(_ state: String, _ error: String = "") -> Service.Look {
        Service.Look(
            state: AccountStatus(rawValue: state),
            errorName: error.isEmpty ? "" : "org.example.UbiquitousStore.Error.\(error)", account: "a")
    }

    @Test(arguments: ["idle", "syncing", "initial-sync", "offline", "paused", "error"])
    func `what mends itself or was chosen is no trouble`(state: String) {
        #expect(Trouble.of(look(state, "BackendUnavailable"), fullStores: []) == [])
    }

    @Test func `a refused password, a remote that is gone and a missing key are mended on the account's page`() {
        let refused = Trouble.of(look("auth-failed", "BackendAuthenticationFailed"), fullStores: [])
        #expect(refused == [.passwordRefused(account: "a")])
        let gone = Trouble.of(look("paused", "RemoteReset"), fullStores: [])
        #expect(gone == [.remoteGone(account: "a")])
        let locked = Trouble.of(look("paused", "KeyNeeded"), fullStores: [])
        #expect(locked == [.keyMissing(account: "a")])
        #expect(refused.union(gone).union(locked).allSatisfy { $0.page == "account" })
    }

    @Test func `parts that are missing are a trouble after an hour, on the account's page`() {
        let waiting = look("initial-sync", "BackendUnavailable")
        #expect(waiting.lacksParts && !look("initial-sync").lacksParts && !look("idle", "Corrupt").lacksParts)
        #expect(Trouble.of(waiting, fullStores: [], lacked: .seconds(3599)) == [])
        let missing = Trouble.of(waiting, fullStores: [], lacked: .seconds(3600))
        #expect(missing == [.partsMissing(account: "a")] && missing.allSatisfy { $0.page == "account" })
    }

    @Test func `each full store is a trouble of its own, on the apps page`() {
        let full = Trouble.of(look("idle"), fullStores: ["org.a", "org.b"])
        #expect(full == [.storeFull("org.a"), .storeFull("org.b")])
        #expect(full.allSatisfy { $0.page == "apps" })
    }
}

struct NotifiedCausesTests {
    private func causes(at time: Int64) -> NotifiedCauses {
        var causes = NotifiedCauses()
        causes.note("remote-gone a", at: time)
        return causes
    }

    @Test(arguments: [(0, false), (86_399, false), (86_400, true)])
    func `the same cause is told again after a day, not before`(later: Int64, isDue: Bool) {
        #expect(causes(at: 1000).isDue("remote-gone a", at: 1000 + later) == isDue)
    }

    @Test func `another cause is told at once`() {
        #expect(causes(at: 1000).isDue("remote-gone b", at: 1000))
    }

    @Test func `a clock that was wrong keeps nothing back for longer than a day`() {
        #expect(causes(at: 4_000_000_000).isDue("remote-gone a", at: 1_800_000_000))
    }

    @Test func `what is written is read, and what is older than a day is forgotten`() {
        var causes = causes(at: 1000)
        causes.note("store-full org.example.App", at: 90_000)
        #expect(NotifiedCauses(causes.text) == causes)
        #expect(causes.text == "90000 store-full org.example.App\n")
    }

    @Test(arguments: ["", "\n\n", "x y", "-5 y", "99999999999999999999 y", "12"])
    func `lines that are no causes are ignored`(text: String) {
        #expect(NotifiedCauses(text) == NotifiedCauses())
    }
}
