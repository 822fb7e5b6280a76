// SPDX-License-Identifier: Apache-2.0

import DesktopTesting
import Foundation
import PropertyList
import SDBus
import Testing
import UbiquitousStoreTesting

extension PanelWindowTests {
    /// Encrypted accounts in the panel, by keyboard: showing, typing and testing their words.
    @Suite(.serialized, .enabled(if: Screen.isAvailable, "Xvfb, at-spi2-core and ImageMagick are not installed"))
    @BusActor
    struct EncryptionWindowTests {
        private static let hidden = "••••••"
        private static let other = "abandon amount liar amount expire adjust cage candy arch gather drum buyer"

        /// Starts a desk with a signed-in encrypted account, and returns it with the account's words.
        private func start(_ style: Style = .light) async throws -> (PanelDesk, String) {
            let desk = try await PanelDesk(style: style)
            try await desk.device.start()
            let folder = try desk.device.directory.makeDirectory("shared")
            try await desk.client.account.join("folder://" + folder, ["encrypt": .boolean(true)])
            let phrase = try await desk.client.account.recoveryPhrase()
            desk.device.keepSecret(phrase)
            try await desk.open()
            return (desk, phrase)
        }

        /// Expects the words on the screen, and nowhere else.
        private func expectWords(_ phrase: String, on desk: PanelDesk) async throws {
            let words = phrase.split(separator: " ").map(String.init)
            try await desk.screen.waits(until: "the words are shown") { sight in words.allSatisfy(sight.shows) }
            #expect(!desk.screen.log.contains(phrase))
            #expect(desk.device.leakedSecrets == [])
        }

        /// Returns the words that have to be typed, in the order of their fields.
        private func asked(of phrase: String, by desk: PanelDesk) async throws -> [String] {
            let sight = try await desk.screen.look()
            return phrase.split(separator: " ").enumerated().filter { sight.shows("Word \($0.offset + 1)") }
                .map { String($0.element) }
        }

        @Test(arguments: Style.english)
        func `the words of a new account are shown, and count as noted when three of them are typed`(
            style: Style
        ) async throws {
            let (desk, folder) = (try await PanelDesk(style: style), try TemporaryDirectory())
            try await desk.device.start()
            try await desk.open()
            try await desk.signIn(to: folder.path)
            try await desk.shows("Write these words down")
            let phrase = try await desk.client.account.recoveryPhrase()
            try await expectWords(phrase, on: desk)
            try await desk.picture("words-new")
            try await desk.screen.press(.enter)
            try await desk.shows("Type these words from your note")
            let asked = try await asked(of: phrase, by: desk)
            #expect(asked.count == 3)
            #expect(try await desk.screen.look().has(Self.hidden) == false)
            try await desk.screen.type("unknown")
            try await desk.screen.press(.enter)
            try await desk.shows("is wrong")
            try await desk.picture("words-test")
            // The wrong words are selected, so that typing replaces them.
            for (number, word) in asked.enumerated() {
                if number > 0 { try await desk.screen.press(.tab) }
                try await desk.screen.type(word)
            }
            try await desk.screen.press(.enter)
            try await desk.shows("Keep the words in a safe place")
            try await desk.shows("Only your devices can read the account")
            try await desk.picture("account-encrypted")
            #expect(desk.complaints == [])
        }

        @Test func `the words are shown again, until the keyboard goes or a minute has passed`() async throws {
            let (desk, phrase) = try await start()
            try await desk.reach("Show Recovery Words…")
            try await desk.screen.press(.enter)
            try await expectWords(phrase, on: desk)
            try await desk.picture("words-again")
            try await desk.activate("shortcuts")
            try await desk.screen.waits(until: "the words are hidden behind the other window") { $0.has(Self.hidden) }
            try await desk.screen.press(.escape)
            try await desk.reach("Show Again")
            try await desk.picture("words-hidden")
            try await desk.screen.press(.enter)
            try await expectWords(phrase, on: desk)
            try await desk.shows(Self.hidden)
            #expect(desk.complaints == [])
        }

        @Test func `signing in to an encrypted account asks for its words, and says what is wrong`() async throws {
            let (desk, phone) = (try await PanelDesk(), try await PanelDesk.Peer("phone"))
            let folder = try TemporaryDirectory()
            try await phone.account.join("folder://" + folder.path, ["encrypt": .boolean(true)])
            let phrase = try await phone.account.recoveryPhrase()
            try await desk.device.start()
            try await desk.open()
            try await desk.signIn(to: folder.path)
            try await desk.screen.waitsForField(below: "The 12 Words, in Their Order")
            try await desk.picture("enter-words")
            try await desk.screen.type("abandon lair ")
            try await desk.shows("Word 2 is not in the word list.")
            try await desk.picture("enter-words-misspelt")
            for (text, sentence) in [
                (Self.other.split(separator: " ").dropLast().joined(separator: " "), "There are 11 words"),
                (Self.other, "These are the words of another account."),
                (Self.other.replacing("buyer", with: "zoo"), "The words don't match"),
            ] {
                try await desk.retype(text)
                try await desk.screen.press(.enter)
                try await desk.shows(sentence)
            }
            try await desk.picture("enter-words-wrong")
            try await desk.retype(phrase.uppercased())
            try await desk.screen.press(.enter)
            try await desk.shows("Only your devices can read the account")
            #expect(desk.complaints == [])
        }

        @Test(arguments: Style.english)
        func `an account whose key is missing asks for its words`(style: Style) async throws {
            let (desk, phrase) = try await start(style)
            try await desk.shows("Up to Date")
            try await desk.device.loseKey()
            try await desk.shows("The Recovery Words Are Missing")
            try await desk.picture("words-missing")
            try await desk.reach("Enter Words…")
            try await desk.screen.press(.enter)
            try await desk.screen.waitsForField(below: "The 12 Words, in Their Order")
            try await desk.screen.type(phrase)
            try await desk.screen.press(.enter)
            try await desk.shows("Up to Date")
            #expect(desk.complaints == [])
        }

        @Test func `an unencrypted account is not joined for an encrypted one without asking`() async throws {
            let (desk, phone) = (try await PanelDesk(), try await PanelDesk.Peer("phone"))
            let folder = try TemporaryDirectory()
            try await phone.account.join("folder://" + folder.path)
            try await desk.device.start()
            try await desk.open()
            try await desk.signIn(to: folder.path)
            try await desk.shows("Sign In Without Encryption?")
            try await desk.reach("Sign In Anyway")
            try await desk.picture("sign-in-plain")
            try await desk.screen.press(.escape)
            try await desk.screen.waits(until: "the question is gone") { !$0.has("Sign In Without Encryption?") }
            #expect(try await desk.client.account.state() == "signed-out")
            try await desk.reach("Sign In")
            try await desk.screen.press(.enter)
            try await desk.reach("Sign In Anyway")
            try await desk.screen.press(.enter)
            try await desk.shows("Not encrypted: those who have access")
            #expect(desk.complaints == [])
        }

        @Test(.enabled(if: Translations.areAvailable, "gettext is not installed"))
        func `in German the words are asked for in German`() async throws {
            let (desk, phrase) = try await start(.german)
            try await desk.shows("Nur Ihre Geräte können das Konto lesen")
            try await desk.reach("Wörter zeigen …")
            try await desk.screen.press(.enter)
            try await expectWords(phrase, on: desk)
            try await desk.picture("words-again")
            try await desk.screen.press(.escape)
            try await desk.device.loseKey()
            try await desk.shows("Die Wiederherstellungswörter fehlen")
            try await desk.picture("words-missing")
            try await desk.reach("Wörter eingeben …")
            try await desk.screen.press(.enter)
            try await desk.screen.waitsForField(below: "Die 12 Wörter, in ihrer Reihenfolge")
            try await desk.screen.type("abandon lair ")
            try await desk.shows("Wort 2 ")
            try await desk.picture("enter-words")
            #expect(desk.complaints == [])
        }
    }
}
