// SPDX-License-Identifier: Apache-2.0

import DesktopTesting
import Foundation
import PropertyList
import SDBus
import ServerTesting
import Testing
import UbiquitousStoreTesting

extension PanelWindowTests {
    /// Unusual input from users, other devices and servers, in real windows.
    @Suite(.serialized, .enabled(if: Screen.isAvailable, "Xvfb, at-spi2-core and ImageMagick are not installed"))
    @BusActor
    struct OddInputWindowTests {
        @Test func `two hundred apps are in the window, and the keyboard gets back to the pages`() async throws {
            let apps = (0..<200).map { "org.example.App\($0)" }
            let desk = try await PanelDesk(apps: apps)
            try await desk.device.start()
            try await desk.open()
            try await desk.shows("Not Signed In")
            try await desk.turn(to: "Apps")
            try await desk.screen.waits(until: "all apps are shown") { sight in apps.allSatisfy(sight.shows) }
            try await desk.picture("200-apps")
            try await desk.screen.press(.backTab)
            try await desk.screen.waits(until: "the keyboard is on Devices") { $0.focus?.isOn("Devices") == true }
            try await desk.screen.press(.space)
            try await desk.screen.waits(until: "the devices are shown") { $0.selectedTab == "Devices" }
            #expect(desk.complaints == [])
        }

        @Test(arguments: [
            ("longest", String(repeating: "x", count: 255)), ("right-to-left", "המחשב של עדה"),
        ])
        func `a device's name of 255 characters or from right to left leaves room for the others`(
            picture: String, name: String
        ) async throws {
            let desk = try await PanelDesk(name)
            let phone = try await PanelDesk.Peer("phone")
            try await desk.device.start()
            let folder = try TemporaryDirectory()
            try await phone.account.join("folder://" + folder.path)
            try await desk.client.account.join("folder://" + folder.path)
            try await desk.client.account.syncNow()
            try await desk.open()
            try await desk.shows("Up to Date")
            try await desk.activate("show-devices")
            try await desk.screen.waits(until: "both devices are shown") { $0.shows(name) && $0.shows("phone") }
            try await desk.picture("device-\(picture)")
            #expect(desk.complaints == [])
        }

        @Test func `names and values with markup, from right to left and of full length are shown as text`()
            async throws
        {
            let (desk, phone) = (try await PanelDesk(), try await PanelDesk.Peer("<i>הטלפון</i> & 2"))
            let (folder, applications) = (try TemporaryDirectory(), try desk.data.makeDirectory("applications"))
            try "[Desktop Entry]\nType=Application\nName=<b>R&D</b> עברית\nExec=true\n".write(
                toFile: applications + "/\(PanelDesk.notes).desktop", atomically: false, encoding: .utf8)
            try await desk.device.start()
            try await phone.account.join("folder://" + folder.path)
            try await desk.client.account.join("folder://" + folder.path)
            let store = try desk.client.store(PanelDesk.notes)
            let long = String(repeating: "k", count: 128)
            for (key, value) in [
                ("<b>bold</b>&amp;", "<span foreground='red'>red</span> %1 & \u{202E}back"), ("מפתח", "ערך 42"),
                (long, String(repeating: "long ", count: 2000)),
            ] { try await store.set(key, .string(Text(value))) }
            try await store.set("מפתח", .string("אחר"))
            try await desk.client.account.syncNow()
            try await desk.open()
            try await desk.turn(to: "Apps")
            try await desk.press("<b>R&D</b> עברית")
            try await desk.shows("<b>bold</b>&amp;")
            try await desk.shows("<span foreground='red'>red</span> %1 & \u{FFFD}back")
            try await desk.shows(long)
            try await desk.press("מפתח")
            try await desk.shows("ערך 42")
            try await desk.picture("odd-store")
            try await desk.press("Forget…")
            try await desk.shows("Forget the Settings of “\u{2068}<b>R&D</b> עברית\u{2069}” on This Device?")
            try await desk.picture("odd-store-question")
            try await desk.screen.press(.escape)
            try await desk.press("Back")
            try await desk.turn(to: "Devices")
            try await desk.press("<i>הטלפון</i> & 2")
            try await desk.press("Forget…")
            try await desk.shows("Forget “\u{2068}<i>הטלפון</i> & 2\u{2069}”?")
            try await desk.picture("odd-device-question")
            #expect(desk.complaints == [])
        }

        @Test func `two panels of a user show the same, whichever does something`() async throws {
            let (desk, folder, phone) = (
                try await PanelDesk(), try TemporaryDirectory(), try await PanelDesk.Peer("phone")
            )
            try await phone.account.join("folder://" + folder.path)
            try await desk.device.start()
            let other = try await PanelDesk(beside: desk)
            for desk in [desk, other] { try await desk.open() }
            try await desk.openSignIn(.folder, showing: "Path of the Folder")
            try await other.signIn(to: folder.path)
            try await other.press("Sign In Anyway")
            try await other.shows("Up to Date")
            // The first panel's sign-in, begun meanwhile, can be completed, to the same account.
            try await desk.enterPlace(folder.path)
            try await desk.press("Sign In Anyway")
            for desk in [desk, other] { try await desk.shows("Up to Date") }
            // A device that runs would list itself again.
            phone.device.kill()
            try await desk.press("Pause Sync")
            for desk in [desk, other] { try await desk.shows("Paused on This Device") }
            try await other.press("Resume")
            for desk in [desk, other] {
                try await desk.shows("Up to Date")
                try await desk.turn(to: "Devices")
                try await desk.press("phone")
                try await desk.press("Forget…")
                try await desk.shows("Forget “\u{2068}phone\u{2069}”?")
            }
            for desk in [desk, other] { try await desk.press("Forget") }
            for desk in [desk, other] { try await desk.hides("phone") }
            #expect(desk.complaints == [])
            #expect(other.complaints == [])
        }

        @Test func `signing in to a server that doesn't answer can be canceled, and tried again`() async throws {
            let folder = MemoryFolder()
            folder.isSilent = true
            let server = try ScriptedServer { folder.answer(to: $0) }
            let desk = try await PanelDesk()
            try await desk.device.start()
            try await desk.open()
            try await desk.openSignIn(.webDAV, showing: "Certificate File, If the Server Has Its Own")
            try await desk.enterPlace("http://127.0.0.1:\(server.port)/settings")
            try await eventually("the server is asked") { !server.requests.isEmpty }
            try await desk.screen.waits(until: "only Cancel takes the keyboard") { $0.focus?.isOn("Cancel") == true }
            try await desk.screen.press(.enter)
            try await desk.screen.waits(until: "the form is there again") { $0.focus?.isOn("Sign In") == true }
            #expect(try await desk.client.account.state() == "signed-out")
            folder.isSilent = false
            try await desk.screen.press(.enter)
            try await desk.shows("Write these words down")
            #expect(desk.complaints == [])
        }

        @Test func `a login in the browser, at a server that doesn't answer, can be canceled`() async throws {
            let server = try ScriptedServer { _ in .nothing }
            let desk = try await PanelDesk()
            try await desk.device.start()
            try await desk.open()
            try await desk.openSignIn(.nextcloud, showing: "App Password")
            try await desk.reach("Open Browser")
            try await desk.screen.enterField()
            try await desk.screen.type("http://127.0.0.1:\(server.port)/")
            try await desk.screen.press(.alt, "b")
            try await eventually("the server is asked") { !server.requests.isEmpty }
            try await desk.screen.waits(until: "only Cancel takes the keyboard") { $0.focus?.isOn("Cancel") == true }
            try await desk.screen.press(.enter)
            // An error would have the keyboard at its field.
            try await desk.screen.waits(until: "the form is there again") { $0.focus?.isOn("Sign In") == true }
            #expect(desk.complaints == [])
        }

        @Test func `a service that goes away is said on an app's page, and the page can be used when it is back`()
            async throws
        {
            let desk = try await PanelDesk()
            try await desk.device.start()
            try await desk.client.store(PanelDesk.prefs).set("backgroundColor", .integer(1))
            try await desk.open()
            try await desk.turn(to: "Apps")
            try await desk.reach(PanelDesk.prefs)
            try await desk.screen.press(.enter)
            try await desk.shows("Open one to see what it was before.")
            desk.device.kill()
            try await desk.shows("The settings service is not running.")
            try await desk.hides("Open one to see what it was before.")
            try await desk.device.start()
            try await desk.shows("Open one to see what it was before.")
            try await desk.reach("backgroundColor")
            try await desk.screen.press(.space)
            try await desk.shows("No earlier values")
            #expect(desk.complaints == [])
        }

        @Test func `a service that goes away closes no dialog, and the words that are asked for can be given later`()
            async throws
        {
            let (desk, folder) = (try await PanelDesk(), try TemporaryDirectory())
            try await desk.device.start()
            try await desk.client.account.join("folder://" + folder.path, ["encrypt": .boolean(true)])
            let phrase = try await desk.client.account.recoveryPhrase()
            try await desk.device.loseKey()
            try await desk.open()
            try await desk.reach("Enter Words…")
            try await desk.screen.press(.enter)
            try await desk.screen.waitsForField(below: "The 12 Words, in Their Order")
            desk.device.kill()
            try await desk.screen.type(phrase)
            try await desk.screen.press(.enter)
            try await desk.shows("The settings service is not running.")
            try await desk.device.start()
            try await desk.screen.press(.enter)
            try await desk.shows("Up to Date")
            #expect(desk.complaints == [])
        }

        @Test func `a dialog that was closed can be opened again`() async throws {
            let (desk, folder) = (try await PanelDesk(), try TemporaryDirectory())
            try await desk.device.start()
            try await desk.open()
            try await desk.shows("Not Signed In")
            for _ in 0..<3 {
                try await desk.reach("Sign In…")
                try await desk.screen.press(.enter)
                try await desk.shows("Keep Settings In")
                try await desk.screen.press(.escape)
                try await desk.screen.waits(until: "the dialog is gone") { !$0.has("Keep Settings In") }
            }
            try await desk.client.account.join("folder://" + folder.path, ["encrypt": .boolean(true)])
            try await desk.device.loseKey()
            for _ in 0..<3 {
                try await desk.reach("Enter Words…")
                try await desk.screen.press(.enter)
                try await desk.screen.waitsForField(below: "The 12 Words, in Their Order")
                try await desk.screen.press(.escape)
                try await desk.screen.waits(until: "the dialog is gone") { !$0.has("The 12 Words, in Their Order") }
            }
            #expect(desk.complaints == [])
        }

        @Test func `a second start shows the window that is there`() async throws {
            let desk = try await PanelDesk()
            try await desk.device.start()
            try await desk.open()
            try await desk.shows("Not Signed In")
            #expect(try await desk.start().finish() == .code(0))
            #expect(desk.complaints == [])
        }
    }
}
