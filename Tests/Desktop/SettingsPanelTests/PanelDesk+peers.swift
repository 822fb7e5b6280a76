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

    /// Activates an action of the panel, as a notification's button does.
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

    /// A kind of remote, by its index in the list.
    enum Kind: Int { case nextcloud, webDAV, folder, etcd }

    /// Opens the sign-in and chooses a kind of remote, by keyboard.
    /// - Parameter field: a field of that kind.
    func openSignIn(_ kind: Kind, showing field: String) async throws {
        try await shows("Not Signed In")
        try await screen.press(.enter)
        try await shows("Keep Settings In")
        try await screen.press(.space)
        for _ in 0..<kind.rawValue { try await screen.press(.down) }
        try await screen.press(.enter)
        try await shows(field)
    }

    /// Types the remote's address into the first field of the sign-in dialog.
    func typePlace(_ place: String) async throws {
        try await reach("Keep Settings In")
        try await screen.enterField()
        try await screen.type(place)
    }

    /// Does the same, and confirms.
    func enterPlace(_ place: String) async throws {
        try await typePlace(place)
        try await screen.press(.enter)
    }

    /// Signs in to a folder, by keyboard.
    func signIn(to folder: String) async throws {
        try await openSignIn(.folder, showing: "Path of the Folder")
        try await enterPlace(folder)
    }

    /// Replaces the contents of the field that has the keyboard focus.
    func retype(_ text: String) async throws {
        // Leaving the field and returning selects its contents.
        try await screen.press(.tab, .backTab)
        try await screen.type(text)
    }

    /// Shows another page, by keyboard.
    func turn(to page: String) async throws {
        try await screen.reach(text(page), tab: true)
        try await screen.press(.space)
    }
}
