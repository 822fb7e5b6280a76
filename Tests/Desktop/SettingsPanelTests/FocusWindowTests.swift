// SPDX-License-Identifier: Apache-2.0

import DesktopTesting
import Foundation
import PropertyList
import SDBus
import ServerTesting
import Testing
import UbiquitousStoreTesting

extension PanelWindowTests {
    /// Where the keyboard is when something else happens, and what Escape and a second press do.
    @Suite(.serialized, .enabled(if: Screen.isAvailable, "Xvfb, at-spi2-core and ImageMagick are not installed"))
    @BusActor
    struct FocusWindowTests {
        /// Starts a desk that is signed in to a folder.
        private func start(style: Style = .light) async throws -> (PanelDesk, folder: TemporaryDirectory) {
            let (desk, folder) = (try await PanelDesk(style: style), try TemporaryDirectory())
            try await desk.device.start()
            try await desk.client.account.join("folder://" + folder.path)
            try await desk.open()
            try await desk.shows("Up to Date")
            return (desk, folder)
        }

        /// Begins to type a name for this device.
        private func beginTyping(_ name: String, on desk: PanelDesk) async throws {
            try await desk.turn(to: "Devices")
            try await desk.press("laptop")
            try await desk.shows("Name")
            try await desk.screen.enterField()
            try await desk.screen.type(name)
        }

        @Test func `a sync that ends while a name is typed takes no key from it`() async throws {
            let folder = MemoryFolder()
            let server = try ScriptedServer { folder.answer(to: $0) }
            let desk = try await PanelDesk()
            try await desk.device.start()
            try await desk.client.account.join("webdav://127.0.0.1:\(server.port)/dav")
            try await desk.open()
            try await desk.shows("Up to Date")
            folder.isSilent = true
            try await desk.press("Sync Now")
            try await desk.screen.waits(until: "it can be canceled") { $0.focus?.isOn("Cancel") == true }
            try await beginTyping("Ada", on: desk)
            server.end()
            try await desk.shows("It can't be reached.")
            try await desk.screen.type("s lap")
            try await desk.screen.press(.enter)
            try await desk.shows("Adas lap")
            #expect(desk.complaints == [])
        }

        @Test func `a device that joins while a name is typed takes no key from it`() async throws {
            let (desk, folder) = try await start()
            let phone = try await PanelDesk.Peer("phone")
            try await beginTyping("Ada", on: desk)
            try await phone.account.join("folder://" + folder.path)
            try await phone.account.syncNow()
            try await desk.client.account.syncNow()
            try await desk.shows("phone")
            try await desk.screen.type("s lap")
            try await desk.screen.press(.enter)
            try await desk.shows("Adas lap")
            #expect(desk.complaints == [])
        }

        @Test func `a service that goes away moves the keyboard to no page that isn't shown`() async throws {
            let (desk, folder) = try await start()
            defer { withExtendedLifetime(folder) {} }
            try await desk.turn(to: "Apps")
            desk.device.kill()
            try await desk.shows("The settings service is not running.")
            try await desk.screen.waits(until: "the keyboard is on the page") { $0.focus?.isOn("Apps") == true }
            #expect(desk.complaints == [])
        }

        @Test func `Escape takes a name back and leaves a store, and never closes the window`() async throws {
            let (desk, folder) = try await start()
            defer { withExtendedLifetime(folder) {} }
            try await beginTyping("Ada", on: desk)
            try await desk.screen.press(.escape)
            try await desk.screen.press(.end)
            try await desk.screen.type("2")
            try await desk.screen.press(.enter)
            try await desk.shows("laptop2")
            try await desk.turn(to: "Apps")
            try await desk.press(PanelDesk.prefs)
            try await desk.shows("Remove Everywhere")
            try await desk.screen.press(.escape)
            try await desk.hides("Remove Everywhere")
            try await desk.screen.press(.escape)
            try await desk.press(PanelDesk.prefs)
            try await desk.shows("Remove Everywhere")
            #expect(desk.window?.exit == nil)
            #expect(desk.complaints == [])
        }

        @Test func `a store that is opened while another one slides out is shown`() async throws {
            let (desk, folder) = try await start()
            defer { withExtendedLifetime(folder) {} }
            try await desk.turn(to: "Apps")
            for pause in [0, 20, 50, 100, 150] {
                try await desk.press(PanelDesk.prefs)
                try await desk.shows("Remove Everywhere")
                try await desk.screen.press(.escape)
                try await Task.sleep(for: .milliseconds(pause))
                try await desk.screen.press(.enter)
                try await desk.screen.press(.escape)
                try await desk.hides("Remove Everywhere")
            }
            try await desk.press(PanelDesk.prefs)
            try await desk.shows("Remove Everywhere")
            #expect(desk.complaints == [])
        }

        @Test func `a button that assistive technology presses twice opens one dialog`() async throws {
            let desk = try await PanelDesk()
            try await desk.device.start()
            try await desk.open()
            try await desk.shows("Not Signed In")
            for _ in 0..<2 { try await desk.screen.act(on: "Sign In…") }
            try await desk.shows("Keep Settings In")
            try await desk.screen.press(.escape)
            try await desk.hides("Keep Settings In")
            let folder = try TemporaryDirectory()
            try await desk.client.account.join("folder://" + folder.path, ["encrypt": .boolean(true)])
            try await desk.device.loseKey()
            try await desk.shows("Enter Words…")
            for _ in 0..<2 { try await desk.screen.act(on: "Enter Words…") }
            try await desk.shows("The 12 Words, in Their Order")
            try await desk.screen.press(.escape)
            try await desk.hides("The 12 Words, in Their Order")
            #expect(desk.complaints == [])
        }

        @Test(arguments: [Style.light, .small, .german])
        func `Enter in a question does nothing that can't be undone`(style: Style) async throws {
            let (desk, folder) = try await start(style: style)
            defer { withExtendedLifetime(folder) {} }
            try await desk.press("Sign Out…")
            try await desk.shows("Sign Out on This Device?")
            try await desk.picture("sign-out")
            try await desk.screen.waits(until: "the keyboard is on Cancel") {
                $0.focus?.isOn(desk.text("Cancel")) == true
            }
            try await desk.screen.press(.enter)
            try await desk.hides("Sign Out on This Device?")
            #expect(try await desk.client.account.state() == "idle")
            #expect(desk.complaints == [])
        }

        @Test func `a file chooser that is canceled changes nothing`() async throws {
            let desk = try await PanelDesk()
            try await desk.device.start()
            try await desk.open()
            try await desk.openSignIn(.folder, showing: "Path of the Folder")
            try await desk.typePlace("/nowhere")
            try await desk.screen.press(.alt, "o")
            try await desk.shows("Other Locations")
            // To the home folder, which the chooser then names when it is canceled.
            try await desk.screen.press(.alt, .home)
            try await desk.picture("chooser")
            try await desk.screen.press(.escape)
            try await desk.hides("Other Locations")
            // A chooser of GTK 4.8 that is closed while it reads a folder complains in a dialog of its own, which takes
            // the keyboard.
            try await desk.screen.act(on: "Sign In")
            try await desk.shows("This folder can't be used.")
            try await desk.shows("/nowhere")
            #expect(desk.complaints == [])
        }
    }
}
