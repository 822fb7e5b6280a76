// SPDX-License-Identifier: Apache-2.0

import DesktopTesting
import Foundation
import PropertyList
import SDBus
import ServerTesting
import Synchronization
import Testing
import UbiquitousStoreTesting

extension PanelWindowTests {
    /// Encrypting accounts and replacing their keys in the panel, by keyboard.
    @Suite(.serialized, .enabled(if: Screen.isAvailable, "Xvfb, at-spi2-core and ImageMagick are not installed"))
    @BusActor
    struct KeyMoveWindowTests {
        private func isEncrypted(_ desk: PanelDesk) async throws -> Bool {
            try await desk.client.account.property("Encrypted") == .boolean(true)
        }

        @Test(arguments: Style.english)
        func `an unencrypted account is encrypted, and shows its words`(style: Style) async throws {
            let (desk, folder) = (try await PanelDesk(style: style), try TemporaryDirectory())
            try await desk.device.start()
            try await desk.client.account.join("folder://" + folder.path)
            try await desk.open()
            try await desk.shows("Not encrypted: those who have access")
            try await desk.reach("Encrypt…")
            try await desk.picture("encrypt")
            try await desk.screen.press(.enter)
            try await desk.shows("Encrypt This Account?")
            try await desk.picture("encrypt-question")
            try await desk.screen.press(.escape)
            try await desk.screen.waits(until: "the question is gone") { !$0.has("Encrypt This Account?") }
            #expect(try await isEncrypted(desk) == false)
            try await encrypt(desk)
            try await desk.shows("Write these words down")
            #expect(try await isEncrypted(desk))
            try await desk.screen.press(.escape)
            try await desk.shows("Only your devices can read the account")
            try await desk.shows("Up to Date")
            try await desk.picture("encrypted")
            #expect(desk.complaints == [])
        }

        @Test func `the words are replaced, and the new ones shown`() async throws {
            let (desk, folder) = (try await PanelDesk(), try TemporaryDirectory())
            try await desk.device.start()
            try await desk.client.account.join("folder://" + folder.path, ["encrypt": .boolean(true)])
            let phrase = try await desk.client.account.recoveryPhrase()
            try await desk.open()
            try await desk.reach("Replace the Words…")
            try await desk.screen.press(.enter)
            try await question("Replace the Recovery Words?", of: "Replace the Words…", on: desk)
            try await desk.picture("replace-question")
            try await desk.reach("Replace")
            try await desk.screen.press(.enter)
            try await desk.shows("Write these words down")
            #expect(try await desk.client.account.recoveryPhrase() != phrase)
            #expect(desk.complaints == [])
        }

        @Test func `while it is encrypted the page says so, and afterwards what went wrong`() async throws {
            let (desk, folder) = (try await PanelDesk(), MemoryFolder())
            let server = try ScriptedServer { folder.answer(to: $0) }
            try await desk.device.start()
            try await desk.client.account.join("webdav://127.0.0.1:\(server.port)/dav")
            try await desk.open()
            try await desk.shows("Up to Date")
            folder.isSilent = true
            try await encrypt(desk)
            try await desk.shows("Encrypting the Account…")
            try await desk.screen.waits(until: "it need not be waited for") { $0.focus?.isOn("Don't Wait") == true }
            try await desk.picture("encrypting")
            server.end()
            try await desk.shows("The location can't be reached. Nothing is lost")
            try await desk.screen.waits(until: "the state is shown again") { !$0.has("Encrypting the Account…") }
            try await desk.picture("encrypting-failed")
            #expect(try await isEncrypted(desk) == false)
            #expect(desk.complaints == [])
        }

        @Test func `a panel that is opened while the account moves says so`() async throws {
            let (desk, folder) = (try await PanelDesk(), MemoryFolder())
            let isReadOnly = Atomic<Bool>(false)
            let server = try ScriptedServer {
                $0.method == "PUT" && isReadOnly.load(ordering: .acquiring) ? .nothing : folder.answer(to: $0)
            }
            try await desk.device.start()
            let account = desk.client.account
            try await account.join("webdav://127.0.0.1:\(server.port)/dav")
            try await account.syncNow()
            #expect(try await account.devices().first?["moves"] == nil)
            isReadOnly.store(true, ordering: .releasing)
            let move = Task { try? await account.encrypt() }
            try await eventually("the move has begun") {
                try await account.devices().first?["moves"] == .string("encrypt")
            }
            try await desk.open()
            try await desk.shows("Encrypting the Account…")
            try await desk.picture("encrypting-elsewhere")
            #expect(desk.complaints == [])
            move.cancel()
        }

        @Test func `who doesn't wait has the page back`() async throws {
            let (desk, folder) = (try await PanelDesk(), MemoryFolder())
            let server = try ScriptedServer { folder.answer(to: $0) }
            try await desk.device.start()
            try await desk.client.account.join("webdav://127.0.0.1:\(server.port)/dav")
            try await desk.open()
            try await desk.shows("Up to Date")
            folder.isSilent = true
            try await encrypt(desk)
            try await desk.screen.waits(until: "it need not be waited for") { $0.focus?.isOn("Don't Wait") == true }
            try await desk.screen.press(.enter)
            try await desk.screen.waits(until: "the page is there again") { !$0.has("Encrypting the Account…") }
            #expect(desk.complaints == [])
        }

        @Test func `what can't be read is asked about, and left out`() async throws {
            let (desk, folder) = (try await PanelDesk(), try TemporaryDirectory())
            try await desk.device.start()
            try await desk.client.account.join("folder://" + folder.path)
            try await desk.client.store(PanelDesk.notes).set("theme", .string("dark"))
            try await desk.client.account.syncNow()
            let heads = folder.path + "/h/"
            let whole = try #require(
                FileManager.default.contentsOfDirectory(atPath: heads).first { $0.count == 16 })
            try Data(contentsOf: URL(filePath: heads + whole)).prefix(100).write(
                to: URL(filePath: heads + "0123456789abcdef"))
            try await desk.open()
            try await encrypt(desk)
            try await desk.shows("Go On Without What Can't Be Read?")
            try await desk.picture("pass-over-question")
            try await desk.screen.press(.escape)
            try await desk.shows("has not arrived on this device, or can't be read. Try again")
            try await desk.picture("pass-over-refused")
            #expect(try await isEncrypted(desk) == false)
            try await encrypt(desk)
            try await desk.reach("Go On")
            try await desk.screen.press(.enter)
            try await desk.shows("Write these words down")
            #expect(try await isEncrypted(desk))
            #expect(desk.complaints == [])
        }

        private func encrypt(_ desk: PanelDesk) async throws {
            try await desk.reach("Encrypt…")
            try await desk.screen.press(.enter)
            try await question("Encrypt This Account?", of: "Encrypt…", on: desk)
            try await desk.reach("Encrypt")
            try await desk.screen.press(.enter)
        }

        /// Waits until a question has the keyboard focus, and no longer the button that opened it.
        private func question(_ text: String, of button: String, on desk: PanelDesk) async throws {
            try await desk.screen.waits(until: "“\(text)” has the keyboard") {
                $0.has(text) && $0.focus?.isOn(button) == false
            }
        }

        @Test func `before the only key of an account goes, its words are shown`() async throws {
            let (desk, folder) = (try await PanelDesk(), try TemporaryDirectory())
            try await desk.device.start()
            try await desk.client.account.join("folder://" + folder.path, ["encrypt": .boolean(true)])
            try await desk.open()
            try await desk.shows("Up to Date")
            try await signOut(desk)
            try await desk.shows("Leave the Account Without the Recovery Words?")
            try await desk.picture("last-key-question")
            try await desk.reach("Show Recovery Words…")
            try await desk.screen.press(.enter)
            try await desk.shows("Write these words down")
            #expect(try await isEncrypted(desk))
            try await desk.screen.press(.escape)
            try await signOut(desk)
            try await desk.reach("Leave Without Them")
            try await desk.screen.press(.enter)
            try await desk.shows("Not Signed In")
            #expect(try await desk.client.account.state() == "signed-out")
            #expect(desk.complaints == [])
        }

        private func signOut(_ desk: PanelDesk) async throws {
            try await desk.reach("Sign Out…")
            try await desk.screen.press(.enter)
            try await desk.shows("Sign Out on This Device?")
            try await desk.reach("Sign Out")
            try await desk.screen.press(.enter)
        }

        @Test(.enabled(if: Translations.areAvailable, "gettext is not installed"))
        func `in German the account is encrypted in German`() async throws {
            let (desk, folder) = (try await PanelDesk(style: .german), try TemporaryDirectory())
            try await desk.device.start()
            try await desk.client.account.join("folder://" + folder.path)
            try await desk.open()
            try await desk.reach("Verschlüsseln …")
            try await desk.screen.press(.enter)
            try await question("Dieses Konto verschlüsseln?", of: "Verschlüsseln …", on: desk)
            try await desk.picture("encrypt-question")
            try await desk.reach("Verschlüsseln")
            try await desk.screen.press(.enter)
            try await desk.shows("Schreiben Sie diese Wörter auf")
            try await desk.screen.press(.escape)
            try await desk.reach("Wörter ersetzen …")
            try await desk.picture("encrypted")
            try await desk.screen.press(.enter)
            try await desk.shows("Die Wiederherstellungswörter ersetzen?")
            try await desk.picture("replace-question")
            #expect(desk.complaints == [])
        }
    }
}
