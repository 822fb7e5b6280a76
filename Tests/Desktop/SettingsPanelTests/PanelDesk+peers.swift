// SPDX-License-Identifier: Apache-2.0

import DesktopTesting
import SDBus
import UbiquitousStoreTesting

extension PanelDesk {
    /// Another device, without a screen.
    @BusActor
    struct Peer {
        let device: Device
        let client: BusClient
        var account: AccountClient { client.account }

        init(_ name: String) async throws {
            let bus = try await PrivateBus.start()
            var options = Device.Options()
            options.name = name
            options.manifests = [ManifestText(PanelDesk.notes), ManifestText(PanelDesk.prefs)]
            device = try await Device.start(on: bus, options)
            client = try BusClient(bus)
        }
    }

    /// Asks the panel for an action, as a notification's button does.
    func activate(_ action: String) async throws {
        let address = screen.environment["DBUS_SESSION_BUS_ADDRESS"] ?? ""
        let session = try BusConnection.open(.address(address), description: "notification")
        defer { session.close() }
        try await session.call(
            "org.example.UbiquitousStore.Settings", "/org/example/UbiquitousStore/Settings",
            "org.freedesktop.Application", "ActivateAction",
            build: { call in
                try call.append(action)
                try call.container("a", "v" as StaticString) {}
                try call.container("a", "{sv}" as StaticString) {}
            }, decode: { _ in })
    }

    /// Signs in to a folder, by keyboard.
    func signIn(to folder: String) async throws {
        try await shows("Not Signed In")
        try await screen.press(.enter)
        try await shows("Keep Settings In")
        // The third kind.
        try await screen.press(.space, .down, .down, .enter)
        try await shows("Path of the Folder")
        try await reach("Keep Settings In")
        try await screen.enterField()
        try await screen.type(folder)
        try await screen.press(.enter)
    }

    /// Replaces what is in the field that has the keyboard.
    func retype(_ text: String) async throws {
        // Away and back again selects what is there.
        try await screen.press(.tab, .backTab)
        try await screen.type(text)
    }

    /// Shows another page, by keyboard.
    func turn(to page: String) async throws {
        try await screen.reach(page, tab: true)
        try await screen.press(.space)
    }
}
