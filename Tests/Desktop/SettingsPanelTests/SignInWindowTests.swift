// SPDX-License-Identifier: Apache-2.0

import DesktopTesting
import Foundation
import PropertyList
import SDBus
import ServerTesting
import Testing
import UbiquitousStoreTesting

extension PanelWindowTests {
    /// The sign-in dialog where the administrator restricts folders, for new credentials, and after a check.
    @Suite(.serialized, .enabled(if: Screen.isAvailable, "Xvfb, at-spi2-core and ImageMagick are not installed"))
    @BusActor
    struct SignInWindowTests {
        @Test func `where the administrator has allowed no folders, the dialog says so`() async throws {
            let desk = try await PanelDesk { $0.mode = "system" }
            try await desk.device.start()
            try await desk.open()
            try await desk.openSignIn(.folder, showing: "Path of the Folder")
            try await desk.shows("its administrator has allowed none")
            try await desk.picture("no-folders")
            for button in ["Sign In", "Check"] {
                try await desk.screen.waits(until: "“\(button)” can't be pressed") { !$0.canPress(button) }
            }
            #expect(desk.complaints == [])
        }

        @Test func `the folder that the administrator has allowed is filled in`() async throws {
            let place = try TemporaryDirectory()
            let root = try place.makeDirectory("root")
            let desk = try await PanelDesk {
                $0.mode = "system"
                $0.arguments = ["--folder-root", root]
            }
            try await desk.device.start()
            try await desk.open()
            try await desk.openSignIn(.folder, showing: "Path of the Folder")
            try await desk.shows("The administrator of this device has allowed")
            try await desk.picture("folder-root")
            try await desk.press("Sign In")
            try await desk.shows("Write these words down")
            #expect(desk.complaints == [])
        }

        @Test func `the administrator's account is filled in, and only what is allowed is offered`() async throws {
            let place = try TemporaryDirectory()
            let settings = place.path + "/settings"
            try "[Sync]\nBackends=webdav webdavs\nDefaultAccount=webdavs://dav.example.org/settings\n".write(
                toFile: settings, atomically: true, encoding: .utf8)
            let desk = try await PanelDesk { $0.arguments = ["--configuration", settings] }
            try await desk.device.start()
            try await desk.open()
            try await desk.shows("Not Signed In")
            try await desk.screen.press(.enter)
            try await desk.shows("https://dav.example.org/settings")
            try await desk.picture("default-account")
            #expect(try await !desk.screen.look().has("Folder"))
            #expect(desk.complaints == [])
        }

        @Test func `what the last account's values are is said, and they can be brought along`() async throws {
            let (desk, place) = (try await PanelDesk(), try TemporaryDirectory())
            let (former, next) = (try place.makeDirectory("former"), try place.makeDirectory("next"))
            try await desk.device.start()
            try await desk.client.account.join("folder://" + former)
            let store = try desk.client.store(PanelDesk.notes)
            try await store.set("theme", .string("dark"))
            try await desk.client.account.syncNow()
            try await desk.client.account.signOut(keepingValues: true)
            try await desk.open()
            try await desk.openSignIn(.folder, showing: "Path of the Folder")
            try await desk.shows("Apps show the settings of an account that this device has left")
            try await desk.typePlace(next)
            try await desk.reach("Bring This Device's Settings Along")
            try await desk.screen.press(.space)
            try await desk.picture("bring")
            try await desk.press("Sign In")
            try await desk.shows("Write these words down")
            #expect(try await store.snapshot().values["theme"] == .string("dark"))
            // A message that is longer than the window is wide has several lines.
            try await desk.screen.press(.escape)
            try FileManager.default.removeItem(atPath: next)
            try await desk.turn(to: "Apps")
            try await desk.press(PanelDesk.notes)
            try await desk.press("Forget…")
            try await desk.picture("forget-question")
            try await desk.press("Forget")
            try await desk.shows("The account may lack settings of this device")
            try await desk.picture("long-message")
            #expect(desk.complaints == [])
        }

        @Test(arguments: [Style.light, .dark, .german, .small])
        func `a check that fails says so where it can be seen`(style: Style) async throws {
            let server = try ScriptedServer { _ in ServerAnswer(401) }
            let desk = try await PanelDesk(style: style)
            try await desk.device.start()
            try await desk.open()
            try await desk.openSignIn(.webDAV, showing: "Certificate File, If the Server Has Its Own")
            try await desk.typePlace("http://127.0.0.1:\(server.port)/settings")
            try await desk.screen.press(.alt, style == .german ? "p" : "h")
            let outcome = desk.text("%1: failed").replacing("%1", with: desk.text("User and Password"))
            try await desk.screen.waits(until: "the keyboard is on “\(outcome)”, which is in the window") { sight in
                guard sight.focus?.isOn(outcome) == true else { return false }
                return try await desk.screen.hasFocusInWindow()
            }
            try await desk.picture("check-failed")
            #expect(desk.complaints == [])
        }
    }
}
