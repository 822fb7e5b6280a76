// SPDX-License-Identifier: Apache-2.0

import DesktopTesting
import Foundation
import PropertyList
import SDBus
import ServerTesting
import Testing
import UbiquitousStoreTesting

/// The panel on its own screens, by keyboard, read as assistive technology reads it. The tests run one at a time,
/// because the CPU draws the windows.
@Suite(.serialized, .enabled(if: Screen.isAvailable, "Xvfb, at-spi2-core and ImageMagick are not installed"))
@BusActor
struct PanelWindowTests {
    @Test func `signing in to a folder by keyboard alone`() async throws {
        let desk = try await PanelDesk()
        try await desk.device.start()
        try await desk.open()
        try await desk.signIn(to: desk.device.directory.path + "/none")
        try await desk.shows("This folder can't be used.")
        try await desk.picture("sign-in-error")
        let folder = try desk.device.directory.makeDirectory("none")
        try await desk.screen.press(.enter)
        try await desk.shows("Write these words down")
        try await desk.screen.press(.escape)
        try await desk.shows("Up to Date")
        try await desk.shows(folder)
    }

    @Test(.enabled(if: Translations.areAvailable, "gettext is not installed"))
    func `in German the window speaks German`() async throws {
        let desk = try await PanelDesk(style: .german)
        try await desk.device.start()
        try await desk.open()
        try await desk.shows("Nicht angemeldet")
        try await desk.picture("signed-out")
        try await desk.screen.press(.enter)
        try await desk.shows("Einstellungen speichern in")
        try await desk.picture("sign-in")
        try await desk.screen.press(.escape)
        let folder = try TemporaryDirectory()
        try await desk.client.account.join("folder://" + folder.path)
        try await desk.shows("Auf dem neuesten Stand")
        try await desk.picture("account")
        #expect(desk.complaints == [])
    }

    @Test func `a notification's action shows the panel at its page`() async throws {
        let desk = try await PanelDesk()
        try await desk.device.start()
        try await desk.open()
        try await desk.shows("Not Signed In")
        try await desk.screen.waits(until: "the account is shown") { $0.selectedTab == "Account" }
        try await desk.activate("show-apps")
        try await desk.screen.waits(until: "the apps are shown") { $0.selectedTab == "Apps" }
    }

    @Test func `F1 lists the shortcuts`() async throws {
        let desk = try await PanelDesk()
        try await desk.device.start()
        try await desk.open()
        try await desk.shows("Not Signed In")
        try await desk.screen.press(.f1)
        try await desk.shows("Show the Keyboard Shortcuts")
        try await desk.picture("shortcuts")
        #expect(desk.complaints == [])
    }

    @Test func `a service that goes away while somebody signs in is said in the dialog`() async throws {
        let desk = try await PanelDesk()
        try await desk.device.start()
        try await desk.open()
        try await desk.openSignIn(.folder, showing: "Path of the Folder")
        desk.device.kill()
        try await desk.enterPlace("/srv/settings")
        try await desk.shows("The settings service is not running.")
        try await desk.picture("sign-in-no-service")
        #expect(desk.complaints == [])
    }

    @Test func `names of devices with markup and control characters are shown as text`() async throws {
        let desk = try await PanelDesk("<b>A & B</b>\u{202E}desktop")
        try await desk.device.start()
        let folder = try TemporaryDirectory()
        try await desk.client.account.join("folder://" + folder.path)
        try await desk.open()
        try await desk.shows("Up to Date")
        try await desk.shows("<b>A & B</b>\u{FFFD}desktop")
        try await desk.activate("show-devices")
        try await desk.screen.waits(until: "the devices are shown") { $0.selectedTab == "Devices" }
        try await desk.picture("odd-device")
        #expect(desk.complaints == [])
    }

    @Test(arguments: Style.english)
    func `every page shows what there is, without complaints of GTK`(style: Style) async throws {
        let desk = try await PanelDesk(style: style)
        let phone = try await PanelDesk.Peer("phone")
        try await desk.device.start()
        try await desk.open()
        try await desk.shows("Not Signed In")
        try await desk.picture("signed-out")
        try await desk.screen.press(.enter)
        try await desk.shows("Keep Settings In")
        try await desk.picture("sign-in")
        try await desk.screen.press(.escape)
        let folder = try TemporaryDirectory()
        try await phone.account.join("folder://" + folder.path)
        let notes = try phone.client.store(PanelDesk.notes)
        try await notes.set("size", .integer(14))
        try await notes.set("text", .data([UInt8](repeating: 1, count: 1_000_000)))
        try await phone.account.syncNow()
        let store = try desk.client.store(PanelDesk.prefs)
        for color in 0...3 { try await store.set("backgroundColor", .integer(Int64(color))) }
        try await desk.client.account.join("folder://" + folder.path)
        try await desk.client.account.syncNow()
        try await desk.shows("Up to Date")
        try await desk.picture("account")
        try await desk.turn(to: "Devices")
        try await desk.shows("phone")
        try await desk.picture("devices")
        try await desk.turn(to: "Apps")
        try await desk.shows("nearly full")
        try await desk.picture("apps")
        try await desk.reach(PanelDesk.prefs)
        try await desk.screen.press(.enter)
        try await desk.shows("backgroundColor")
        try await desk.reach("backgroundColor")
        try await desk.screen.press(.space)
        try await desk.shows("Restore")
        try await desk.picture("store")
        #expect(desk.complaints == [])
    }

    @Test func `among many apps, one is searched for`() async throws {
        let desk = try await PanelDesk(apps: (1...20).map { "org.example.App\($0)" })
        try await desk.device.start()
        try await desk.open()
        try await desk.turn(to: "Apps")
        try await desk.reach("org.example.App1")
        try await desk.screen.press(.shift, .tab)
        try await desk.screen.type("app17")
        try await desk.screen.waits(until: "only this app is shown") {
            $0.has("org.example.App17") && !$0.has("org.example.App12")
        }
        try await desk.picture("search")
        try await desk.screen.type("x")
        try await desk.shows("No app's name contains “app17x”.")
        try await desk.screen.press(.escape)
        try await desk.shows("org.example.App12")
        #expect(desk.complaints == [])
    }

    @Test func `what keeps sync from going on is said, with what to do`() async throws {
        let desk = try await PanelDesk()
        try await desk.device.start()
        let folder = try TemporaryDirectory()
        try await desk.client.account.join("folder://" + folder.path)
        try await desk.open()
        try await desk.shows("Up to Date")
        try await desk.client.account.setPaused(true)
        try await desk.shows("Paused on This Device")
        try await desk.picture("paused")
        try await desk.reach("Resume")
        try await desk.screen.press(.enter)
        try await desk.shows("Up to Date")
        for file in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            try FileManager.default.removeItem(atPath: folder.path + "/" + file)
        }
        _ = try? await desk.client.account.syncNow()
        try await desk.shows("The Account Is Gone")
        try await desk.picture("remote-reset")
        try await desk.reach("What Now…")
        try await desk.screen.press(.enter)
        try await desk.shows("Which Side Do You Want to Keep?")
        try await desk.picture("resolve")
        try await desk.reach("Use This Device's")
        try await desk.screen.press(.enter)
        try await desk.shows("Up to Date")
        desk.device.kill()
        try await desk.shows("No Settings Service")
        try await desk.picture("no-service")
        #expect(desk.complaints == [])
    }

    @Test func `a new device goes on without what nobody has any more`() async throws {
        let desk = try await PanelDesk()
        let phone = try await PanelDesk.Peer("phone")
        let folder = try TemporaryDirectory()
        try await phone.account.join("folder://" + folder.path)
        try await phone.client.store(PanelDesk.notes).set("text", .data([UInt8](repeating: 1, count: 100_000)))
        try await phone.account.syncNow()
        phone.device.kill()
        let segments = folder.path + "/s"
        try FileManager.default.removeItem(atPath: segments)
        try FileManager.default.createDirectory(atPath: segments, withIntermediateDirectories: false)
        try await desk.device.start()
        _ = try await desk.client.account.signIn("folder://" + folder.path)
        try await desk.open()
        try await desk.shows("Parts of the Account Are Missing")
        try await desk.picture("parts-missing")
        try await desk.reach("Go On Without…")
        try await desk.screen.press(.enter)
        try await desk.shows("Go On Without What Is Missing?")
        try await desk.picture("go-on")
        try await desk.reach("Go On")
        try await desk.screen.press(.enter)
        try await desk.shows("Not Everything Is Up to Date")
        #expect(desk.complaints == [])
    }

    @Test(.enabled(if: WebDAVServer.Kind.apache.program != nil, "Apache is not installed"))
    func `a password that was changed elsewhere is asked for`() async throws {
        let desk = try await PanelDesk()
        try await desk.device.start()
        let server = try WebDAVServer(.apache, access: .basic)
        try await desk.client.account.join(
            server.url + "/settings",
            ["user": .string(Text(WebDAVServer.user)), "password": .string(Text(WebDAVServer.password))])
        try await desk.open()
        try await desk.shows("Up to Date")
        server.stop()
        _ = try? await desk.client.account.syncNow()
        try await desk.shows("Offline")
        try await desk.picture("offline")
        try server.change(password: "another")
        _ = try? await desk.client.account.syncNow()
        try await desk.shows("The Password Is Refused")
        try await desk.picture("password")
        try await desk.reach("New Password…")
        try await desk.screen.press(.enter)
        try await desk.shows("User Name, If Another")
        try await desk.picture("new-password")
        // The location is in the dialog, and the keyboard on the password.
        try await desk.screen.type("a third")
        try await desk.screen.press(.enter)
        try await desk.shows("The user name or password is refused.")
        try await desk.picture("new-password-refused")
        try await desk.retype("another")
        try await desk.screen.press(.enter)
        try await desk.shows("Up to Date")
    }
}
