// SPDX-License-Identifier: Apache-2.0

import DesktopTesting
import Foundation
import PropertyList
import SDBus
import ServerTesting
import Testing
import UbiquitousStoreTesting

extension PanelWindowTests {
    /// Dialogs that are closed, confirmed twice, or open when the service goes away, by keyboard.
    @Suite(.serialized, .enabled(if: Screen.isAvailable, "Xvfb, at-spi2-core and ImageMagick are not installed"))
    @BusActor
    struct DialogWindowTests {
        private static let certificate = "Certificate File, If the Server Has Its Own"

        /// Starts a desk that is signed in to a folder.
        private func start(encrypts: Bool = false) async throws -> (PanelDesk, folder: TemporaryDirectory) {
            let (desk, folder) = (try await PanelDesk(), try TemporaryDirectory())
            try await desk.device.start()
            try await desk.client.account.join("folder://" + folder.path, ["encrypt": .boolean(encrypts)])
            try await desk.open()
            try await desk.shows("Up to Date")
            return (desk, folder)
        }

        /// Starts a server that doesn't answer until its folder's `isSilent` is false.
        private func silentServer() throws -> (ScriptedServer, MemoryFolder, url: String) {
            let folder = MemoryFolder()
            folder.isSilent = true
            let server = try ScriptedServer { folder.answer(to: $0) }
            return (server, folder, "http://127.0.0.1:\(server.port)/settings")
        }

        @Test(arguments: [Style.light, .german])
        func `Escape closes the sign-in, and what had begun comes to nothing`(style: Style) async throws {
            let (server, folder, url) = try silentServer()
            let desk = try await PanelDesk(style: style)
            try await desk.device.start()
            try await desk.open()
            try await desk.openSignIn(.webDAV, showing: Self.certificate)
            try await desk.typePlace(url)
            try await desk.screen.press(.escape)
            try await desk.hides("Keep Settings In")
            #expect(server.requests.isEmpty)
            try await desk.openSignIn(.webDAV, showing: Self.certificate)
            try await desk.enterPlace(url)
            try await eventually("the server is asked") { !server.requests.isEmpty }
            try await desk.screen.press(.escape)
            try await desk.hides("Keep Settings In")
            try await eventually("the service has left the server") { server.openConnections == 0 }
            folder.isSilent = false
            #expect(try await desk.client.account.state() == "signed-out")
            try await desk.openSignIn(.webDAV, showing: Self.certificate)
            try await desk.enterPlace(url)
            try await desk.shows("Continue")
            #expect(desk.complaints == [])
        }

        @Test(arguments: [Style.light, .large, .small, .german])
        func `each kind of account asks for what it needs`(style: Style) async throws {
            let desk = try await PanelDesk(style: style)
            try await desk.device.start()
            try await desk.open()
            for (kind, field) in [
                (PanelDesk.Kind.nextcloud, "App Password"), (.webDAV, "Token, Instead of User and Password"),
                (.etcd, "Prefix, such as settings/ada"), (.folder, "Path of the Folder"),
            ] {
                try await desk.openSignIn(kind, showing: field)
                try await desk.picture("sign-in-\(kind)")
                if kind != .folder {
                    try await desk.screen.press(.escape)
                    try await desk.hides("Keep Settings In")
                }
            }
            try await desk.enterPlace("/" + Array(repeating: "a very long name", count: 15).joined(separator: " "))
            try await desk.shows("This folder can't be used.")
            try await desk.picture("sign-in-long-error")
            #expect(desk.complaints == [])
        }

        @Test func `what a check waits for can be given up, and the check made again`() async throws {
            let (server, folder, url) = try silentServer()
            let desk = try await PanelDesk()
            try await desk.device.start()
            try await desk.open()
            try await desk.openSignIn(.webDAV, showing: Self.certificate)
            try await desk.typePlace(url)
            try await desk.screen.press(.alt, "h")
            try await eventually("the server is asked") { !server.requests.isEmpty }
            try await desk.screen.waits(until: "only Cancel takes the keyboard") { $0.focus?.isOn("Cancel") == true }
            try await desk.picture("checking")
            try await desk.screen.press(.enter)
            try await desk.screen.waits(until: "the form is there again") { $0.focus?.isOn("Check") == true }
            try await eventually("the service has left the server") { server.openConnections == 0 }
            folder.isSilent = false
            try await desk.screen.press(.enter)
            try await desk.screen.waits(until: "the keyboard is on a step") {
                $0.has("Address: OK") && $0.focus?.isOn("Check") == false
            }
            try await desk.picture("checked")
            #expect(desk.complaints == [])
        }

        @Test func `a button that is pressed many times opens one dialog`() async throws {
            let (desk, folder) = try await start(encrypts: true)
            defer { withExtendedLifetime(folder) {} }
            try await desk.reach("Show Recovery Words…")
            desk.device.signal(SIGSTOP)
            // A button pressed by keyboard reacts after a quarter of a second.
            for _ in 0..<10 {
                try await desk.screen.press(.enter)
                try await Task.sleep(for: .milliseconds(100))
            }
            desk.device.signal(SIGCONT)
            try await desk.shows("Write these words down")
            try await desk.screen.press(.escape)
            try await desk.hides("Write these words down")
            try await desk.press("Show Recovery Words…")
            try await desk.shows("Write these words down")
            #expect(desk.complaints == [])
        }

        @Test func `a switch whose call the service didn't take goes back`() async throws {
            let (desk, folder) = try await start()
            defer { withExtendedLifetime(folder) {} }
            let labels = [PanelDesk.notes, PanelDesk.prefs].map { "Sync the settings of “\($0)”" }
            try await desk.turn(to: "Apps")
            try await desk.reach(labels[0])
            desk.device.signal(SIGSTOP)
            try await desk.screen.press(.space)
            try await desk.screen.waits(until: "the switch is off") { labels.flatMap($0.areOn) == [false, true] }
            desk.device.kill()
            try await desk.device.start()
            try await desk.screen.waits(until: "the switch is on again") { labels.flatMap($0.areOn) == [true, true] }
            #expect(desk.complaints == [])
        }

        @Test func `Control and W close a dialog, and then the window`() async throws {
            let (desk, folder) = try await start()
            defer { withExtendedLifetime(folder) {} }
            try await desk.press("Switch…")
            try await desk.shows("Keep Settings In")
            try await desk.screen.press(.control, "w")
            try await desk.hides("Keep Settings In")
            try await desk.reach("Sync Now")
            try await desk.screen.press(.control, "w")
            #expect(try await desk.window?.finish() == .code(0))
            #expect(desk.complaints == [])
        }

        @Test func `while something is under way, no other thing can be begun that would be forgotten`() async throws {
            let (server, folder, _) = try silentServer()
            folder.isSilent = false
            let desk = try await PanelDesk()
            try await desk.device.start()
            try await desk.client.account.join("webdav://127.0.0.1:\(server.port)/dav")
            try await desk.open()
            try await desk.screen.waits(until: "a move is offered") { $0.canPress("Encrypt…") }
            folder.isSilent = true
            try await desk.press("Sync Now")
            try await desk.screen.waits(until: "it can be canceled") { $0.focus?.isOn("Cancel") == true }
            try await desk.picture("sync-now")
            try await desk.screen.waits(until: "a move waits") { !$0.canPress("Encrypt…") }
            try await desk.press("Cancel")
            try await desk.screen.waits(until: "a move is offered again") { $0.canPress("Encrypt…") }
            #expect(desk.complaints == [])
        }

        /// A dialog, its question, and the effect of the answer.
        private struct Question: Sendable {
            var page: String
            /// The buttons to press, in order, until the dialog opens.
            var steps: [String]
            var text: String
            var answer: String
            /// What the panel shows afterwards.
            var outcome: String
        }

        private nonisolated static let questions = [
            Question(
                page: "Account", steps: ["Sign Out…"], text: "Sign Out on This Device?", answer: "Sign Out",
                outcome: "Not Signed In"),
            Question(
                page: "Account", steps: ["Encrypt…"], text: "Encrypt This Account?", answer: "Encrypt",
                outcome: "Write these words down"),
            Question(
                page: "Devices", steps: ["phone", "Forget…"], text: "Forget “\u{2068}phone\u{2069}”?", answer: "Forget",
                outcome: "These have the same settings."),
            Question(
                page: "Apps", steps: [PanelDesk.notes, "Remove…"],
                text: "Remove the Settings of “\u{2068}\(PanelDesk.notes)\u{2069}” Everywhere?", answer: "Remove",
                outcome: "No settings yet"),
        ]

        @Test(arguments: questions.indices)
        func `a service that goes away while a question is open is said, and can be asked when it is back`(
            number: Int
        ) async throws {
            let question = Self.questions[number]
            let (desk, folder) = try await start()
            let phone = try await PanelDesk.Peer("phone")
            try await phone.account.join("folder://" + folder.path)
            try await desk.client.store(PanelDesk.notes).set("size", .integer(14))
            try await desk.client.account.syncNow()
            try await ask(question, on: desk)
            try await desk.picture("question-\(number)")
            desk.device.kill()
            try await desk.press(question.answer)
            try await desk.hides(question.text)
            try await desk.shows("The settings service is not running.")
            try await desk.picture("question-\(number)-no-service")
            try await desk.device.start()
            try await desk.shows("Up to Date")
            try await ask(question, again: true, on: desk)
            try await desk.press(question.answer)
            try await desk.hides(question.text)
            try await desk.shows(question.outcome)
            #expect(desk.complaints == [])
        }

        private func ask(_ question: Question, again: Bool = false, on desk: PanelDesk) async throws {
            try await desk.turn(to: question.page)
            // The device's row stays expanded.
            for step in question.steps where !again || step != "phone" { try await desk.press(step) }
            try await desk.shows(question.text)
        }
    }
}
