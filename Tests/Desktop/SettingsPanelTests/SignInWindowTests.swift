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
        @Test(arguments: [Style.light, .dark, .german, .small])
        func `a check that fails says so where it can be seen`(style: Style) async throws {
            let server = try ScriptedServer { _ in ServerAnswer(401) }
            let desk = try await PanelDesk(style: style)
            try await desk.device.start()
            try await desk.open()
            try await desk.openSignIn(.webDAV, showing: "Certificate File, If the Server Has Its Own")
            try await desk.reach("Keep Settings In")
            try await desk.screen.enterField()
            try await desk.screen.type("http://127.0.0.1:\(server.port)/settings")
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
