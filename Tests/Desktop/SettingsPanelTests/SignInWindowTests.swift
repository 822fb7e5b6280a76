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
