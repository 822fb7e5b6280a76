// SPDX-License-Identifier: Apache-2.0

import DesktopTesting
import Foundation
import PropertyList
import SDBus
import ServerTesting
import Testing
import UbiquitousStoreTesting

extension PanelWindowTests {
    /// Signing in to servers, and an app's earlier settings, in real windows.
    @Suite(.serialized, .enabled(if: Screen.isAvailable, "Xvfb, at-spi2-core and ImageMagick are not installed"))
    @BusActor
    struct ServerWindowTests {
        /// Makes a browser that writes the page's address into a file, and the user's usual one.
        /// - Returns: the file.
        private func installBrowser(of desk: PanelDesk) throws -> String {
            let (script, opened) = (desk.data.path + "/browser", desk.data.path + "/opened")
            try "#!/bin/sh\nprintf %s \"$1\" >'\(opened)'\n".write(toFile: script, atomically: true, encoding: .utf8)
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: script)
            let applications = try desk.data.makeDirectory("applications", mode: 0o755)
            try """
            [Desktop Entry]
            Type=Application
            Name=Browser
            Exec=\(script) %u
            MimeType=x-scheme-handler/http;
            """.write(toFile: applications + "/browser.desktop", atomically: true, encoding: .utf8)
            try "[Default Applications]\nx-scheme-handler/http=browser.desktop\n".write(
                toFile: applications + "/mimeapps.list", atomically: true, encoding: .utf8)
            return opened
        }

        @Test func `a user signs in to Nextcloud by agreeing in the browser`() async throws {
            let desk = try await PanelDesk()
            let opened = try installBrowser(of: desk)
            let (folder, credentials) = (MemoryFolder(), "Basic " + Data("ada:app".utf8).base64EncodedString())
            let server = try ScriptedServer { request in
                let origin = "http://" + (request.headers["host"] ?? "")
                switch request.path {
                case "/nc/index.php/login/v2":
                    return ServerAnswer(
                        200, [:],
                        #"{"poll":{"token":"t","endpoint":"\#(origin)/poll"},"login":"\#(origin)/agree?flow=1&x=2"}"#)
                case "/poll":
                    let page = try? String(contentsOfFile: opened, encoding: .utf8)
                    guard page == origin + "/agree?flow=1&x=2" else { return ServerAnswer(404, [:], "[]") }
                    return ServerAnswer(200, [:], #"{"server":"\#(origin)/nc","loginName":"ada","appPassword":"app"}"#)
                default:
                    if request.headers["authorization"] == credentials { return folder.answer(to: request) }
                    return ServerAnswer(401, ["WWW-Authenticate": #"Basic realm="cloud""#])
                }
            }
            try await desk.device.start()
            try await desk.open()
            try await desk.openSignIn(.nextcloud, showing: "App Password")
            try await desk.reach("Open Browser")
            try await desk.screen.enterField()
            try await desk.screen.type("http://127.0.0.1:\(server.port)/nc")
            try await desk.screen.press(.alt, "b")
            try await desk.screen.waits(until: "the form is filled in") { $0.focus?.isOn("Sign In") == true }
            try await desk.screen.press(.enter)
            try await desk.shows("Write these words down")
            #expect(
                server.requests.contains { $0.path.hasPrefix("/nc/remote.php/dav/files/ada/") && $0.method == "PUT" })
            #expect(desk.complaints == [])
        }

        @Test(.enabled(if: EtcdCluster.isInstalled, "etcd is not installed"))
        func `a user signs in to etcd, and a wrong password is said at its field`() async throws {
            let cluster = try EtcdCluster(EtcdCluster.Options(requiresUser: true))
            let desk = try await PanelDesk()
            try await desk.device.start()
            try await desk.open()
            try await desk.openSignIn(.etcd, showing: "Prefix, such as settings/ada")
            try await desk.typePlace("etcd://127.0.0.1:\(cluster.ports[0])")
            for text in [EtcdCluster.prefix, EtcdCluster.user, "wrong"] {
                try await desk.screen.press(.tab)
                try await desk.screen.type(text)
            }
            try await desk.screen.press(.enter)
            try await desk.shows("The user name or password is refused.")
            // The password has the keyboard.
            try await desk.retype(EtcdCluster.password)
            try await desk.screen.press(.enter)
            try await desk.shows("Write these words down")
            #expect(desk.complaints == [])
        }

        @Test func `an earlier value is restored, and that undone`() async throws {
            let desk = try await PanelDesk()
            try await desk.device.start()
            let store = try desk.client.store(PanelDesk.prefs)
            for color in 1...2 { try await store.set("backgroundColor", .integer(Int64(color))) }
            try await desk.open()
            try await desk.turn(to: "Apps")
            try await desk.reach(PanelDesk.prefs)
            try await desk.screen.press(.enter)
            try await desk.reach("backgroundColor")
            try await desk.screen.press(.space)
            try await desk.shows("Restore")
            try await desk.press("Restore")
            try await desk.shows("Restored")
            #expect(try await store.value("backgroundColor") == .integer(1))
            try await desk.screen.act(on: "Undo")
            try await eventually("it is undone") { try await store.value("backgroundColor") == .integer(2) }
            #expect(desk.complaints == [])
        }
    }
}
