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
        @Test func `a file chooser that is canceled changes nothing`() async throws {
            let desk = try await PanelDesk()
            try await desk.device.start()
            try await desk.open()
            try await desk.openSignIn(.folder, showing: "Path of the Folder")
            try await desk.reach("Keep Settings In")
            try await desk.screen.enterField()
            try await desk.screen.type("/nowhere")
            try await desk.screen.press(.alt, "o")
            try await desk.shows("Other Locations")
            // To the home folder, which the chooser then names when it is canceled.
            try await desk.screen.press(.alt, .home)
            try await desk.picture("chooser")
            try await desk.screen.press(.escape)
            try await desk.hides("Other Locations")
            try await desk.press("Sign In")
            try await desk.shows("This folder can't be used.")
            try await desk.shows("/nowhere")
            #expect(desk.complaints == [])
        }
    }
}
