// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Testing

@testable import PanelModel
@testable import UbiquitousStore

struct AccountPageTests {
    private static let now: UInt64 = 1_700_000_000_000_000

    private func account(_ state: String, error: String, _ more: [String: Value] = [:]) -> AccountDescription {
        var properties: [String: Value] = [
            "State": .string(Text(state)),
            "Backend": .string("webdavs://cloud.example.org/remote.php/dav/files/ada/Settings"),
        ]
        if !error.isEmpty {
            properties["LastErrorName"] = .string(Text("org.example.UbiquitousStore.Error." + error))
            properties["LastErrorMessage"] = .string("The server said no.")
        }
        return AccountDescription(properties.merging(more) { $1 })
    }

    private func page(_ state: String, error: String = "", _ more: [String: Value] = [:]) -> AccountPage {
        AccountPage(account(state, error: error, more), features: ["webdavs", "encryption"], now: Self.now)
    }

    @Test(arguments: [
        ("signed-out", "", "Not Signed In", AccountPage.Step.signIn, AccountPage.Tone.waiting),
        ("idle", "", "Up to Date", .syncNow, .good),
        ("idle", "Corrupt", "Not Everything Is Up to Date", .syncNow, .bad),
        ("idle", "BackendUnavailable", "Not Everything Is Up to Date", .syncNow, .bad),
        ("syncing", "", "Exchanging Changes…", .syncNow, .busy),
        ("initial-sync", "", "Fetching the Account for the First Time…", .syncNow, .busy),
        ("initial-sync", "BackendUnavailable", "Parts of the Account Are Missing", .goOn, .waiting),
        ("initial-sync", "Corrupt", "Parts of the Account Are Missing", .goOn, .waiting),
        ("offline", "BackendUnavailable", "Offline", .tryNow, .waiting),
        ("auth-failed", "BackendAuthenticationFailed", "The Password Is Refused", .newPassword, .bad),
        ("paused", "", "Paused on This Device", .resume, .waiting),
        ("paused", "RemoteReset", "The Account Is Gone", .resolve, .bad),
        ("paused", "KeyNeeded", "The Recovery Words Are Missing", .enterWords, .bad),
        ("error", "BackendFull", "No Space Is Left", .tryNow, .bad),
        ("error", "Corrupt", "Sync Has Failed", .tryNow, .bad),
        ("a state of years to come", "", "Sync Has Failed", .tryNow, .bad),
    ])
    func `each state has its words and what to do`(
        state: String, error: String, title: String, step: AccountPage.Step, tone: AccountPage.Tone
    ) {
        let page = page(state, error: error)
        #expect(page.title == title)
        #expect(page.step == step)
        #expect(page.tone == tone)
        #expect(!page.explanation.isEmpty)
        #expect(page.details.contains("The server said no.") == !error.isEmpty)
        // Other stops are not the user's pause.
        #expect(page.isPaused == (state == "paused" && error.isEmpty))
    }

    @Test func `a folder that is not there is told apart from a server that is away`() {
        let missing: [String: Value] = ["LastErrorReason": .string("folder-missing")]
        let page = page("offline", error: "BackendUnavailable", missing)
        #expect(page.title == "The Folder Is Missing" && page.tone == .waiting && page.step == .tryNow)
        #expect(page.explanation.hasPrefix("cloud.example.org responds"))
    }

    @Test func `a user whose account can't be read is asked to sign in, and not told that it isn't encrypted`() {
        let page = page("error", error: "Corrupt", ["Backend": .string("")])
        #expect(page.step == .signIn && page.tone == .bad && page.keyMove == nil)
        #expect(page.encryption.hasPrefix("Unknown"))
        #expect(!page.hasRecoveryWords)
    }

    @Test func `words that nobody has confirmed are asked for where the encryption is shown`() {
        let unconfirmed: [String: Value] = ["Encrypted": .boolean(true), "PhraseUnconfirmed": .boolean(true)]
        #expect(page("idle", unconfirmed).encryption.contains("write them down"))
        #expect(!page("idle", ["Encrypted": .boolean(true)]).encryption.contains("write them down"))
    }

    @Test(arguments: [("idle", "", true, true), ("paused", "KeyNeeded", true, false), ("idle", "", false, false)])
    func `words are shown for an encrypted account whose key is here`(
        state: String, error: String, isEncrypted: Bool, hasWords: Bool
    ) {
        let page = page(state, error: error, ["Encrypted": .boolean(isEncrypted)])
        #expect(page.hasRecoveryWords == hasWords)
        #expect(page.encryption.contains("Not encrypted") != isEncrypted)
        #expect(page.canPause == error.isEmpty)
    }

    @Test(arguments: [
        ("idle", "", "webdavs://a/b", false, KeyMove.encrypt, true),
        ("idle", "", "folder:///a", true, .replaceWords, true),
        ("syncing", "", "folder:///etcd", false, .encrypt, true),
        ("offline", "BackendUnavailable", "folder:///a", true, .replaceWords, false),
        ("paused", "", "folder:///a", false, .encrypt, false),
        ("paused", "KeyNeeded", "folder:///a", true, nil, false),
        ("error", "Corrupt", "folder:///a", false, .encrypt, true),
        ("error", "BackendFull", "folder:///a", false, .encrypt, false),
        ("idle", "", "etcds://a/b", false, .encrypt, true), ("signed-out", "", "", false, nil, false),
    ])
    func `a new key is offered where there can be one, and given when all is up to date`(
        state: String, error: String, backend: String, isEncrypted: Bool, move: KeyMove?, canMove: Bool
    ) {
        let page = page(
            state, error: error, ["Encrypted": .boolean(isEncrypted), "Backend": .string(Text(backend))])
        #expect(page.keyMove == move)
        #expect(page.canMove == canMove)
        guard let move else { return }
        let during = page.during(move)
        #expect(during.tone == .busy && during.title != page.title)
        #expect(!during.canMove)
    }

    @Test(arguments: [
        ("idle", "", "encrypt", "Encrypting the Account…"), ("syncing", "", "encrypt", "Encrypting the Account…"),
        ("idle", "", "replace-key", "Replacing the Recovery Words…"), ("idle", "", "", "Up to Date"),
        ("idle", "", "a move of years to come", "Up to Date"),
        ("offline", "BackendUnavailable", "encrypt", "Offline"),
        ("paused", "KeyNeeded", "replace-key", "The Recovery Words Are Missing"),
    ])
    func `a move that another window has begun is said, unless something keeps it from going on`(
        state: String, error: String, move: String, title: String
    ) {
        func device(_ name: String, moves: String) -> DeviceDescription {
            DeviceDescription(identifier: name, name: name, lastSeen: 0, isThisOne: name == "here", moves: moves)
        }
        let state = PanelState(
            features: ["encryption"], account: account(state, error: error),
            devices: [device("other", moves: ""), device("here", moves: move)], apps: [], time: Self.now)
        #expect(state.accountPage.title == title)
        #expect(state.accountPage.canMove == (title == "Up to Date"))
    }

    @Test func `a service that knows no encryption is asked for none`() {
        let account = AccountDescription(["State": .string("idle"), "Backend": .string("folder:///a")])
        #expect(AccountPage(account, features: ["folder"], now: Self.now).keyMove == nil)
    }

    @Test(
        arguments: [KeyMove.encrypt, .replaceWords],
        [UbiquitousStoreError.Code.conflict, .keyNeeded, .backendUnsupported, .backendUnavailable, .timedOut, .busy])
    func `why there is no new key is a sentence`(move: KeyMove, code: UbiquitousStoreError.Code) {
        let sentence = move.sentence(UbiquitousStoreError(code, "In English."))
        #expect(sentence.hasSuffix("."))
        #expect(!sentence.contains("In English"))
    }

    @Test func `what can't be reached is named, with the next attempt`() {
        let page = page(
            "offline", error: "BackendUnavailable", ["NextAttemptUSec": .integer(Int64(Self.now + 110_000_000))])
        #expect(page.explanation.contains("cloud.example.org can't be reached; next attempt in 2 minutes."))
    }

    @Test func `changes that wait keep an account from being up to date`() {
        let page = page("idle", ["PendingChanges": .integer(3)])
        #expect(page.title == "Changes Wait to Be Uploaded")
        #expect(page.pending == "3 changes")
        #expect(page.signingOut.contains(" 3 changes were not uploaded yet. They are lost if you have the settings"))
        #expect(page.signingOut.hasSuffix("uploaded once you sign in to this account again."))
        #expect(!self.page("idle").signingOut.contains("not uploaded"))
    }

    @Test(arguments: ["RemoteReset", "KeyNeeded"])
    func `who signs out of an account that may lack settings is told what removing them does`(error: String) {
        #expect(page("paused", error: error).signingOut.contains("They are lost if you have the settings removed."))
        let uploaded: [String: Value] = ["LastPushUSec": .integer(1)]
        #expect(!page("offline", error: "BackendUnavailable", uploaded).signingOut.contains("lost"))
        #expect(page("offline", error: "BackendUnavailable").signingOut.contains("They are lost"))
        #expect(page("error", error: "Corrupt", uploaded).signingOut.contains("They are lost"))
        #expect(!page("error", error: "BackendFull", uploaded).signingOut.contains("lost"))
    }

    @Test func `the last exchange is the later of download and upload`() {
        let times: [String: Value] = [
            "LastPullUSec": .integer(Int64(Self.now - 7_200_000_000)),
            "LastPushUSec": .integer(Int64(Self.now - 180_000_000)),
        ]
        #expect(page("idle", times).lastExchange == "3 minutes ago")
        #expect(page("idle").lastExchange == "Never")
    }

    @Test func `what never happened has no date in the details`() {
        let page = page("error", error: "Corrupt", ["LastPushUSec": .integer(1_000_000)])
        #expect(page.details.contains("Last download: never"))
        #expect(page.details.contains("Last upload: 1970-01-0"))
    }

    @Test(arguments: [Int64.max, -1, 0])
    func `times that no clock has are shown without harm`(time: Int64) {
        let page = page("offline", ["LastPullUSec": .integer(time), "NextAttemptUSec": .integer(time)])
        #expect(!page.lastExchange.isEmpty)
    }

    @Test func `a folder is shown as the path that it is`() {
        let page = page("idle", ["Backend": .string("folder:///home/ada/My%20Sync")])
        #expect(page.address == "/home/ada/My Sync")
    }
}
