// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
internal import SDBus

/// The user's desktop: the notification server, and the settings panel.
@BusActor
final class Desktop {
    private let bus: BusConnection
    private var matches: [Slot] = []
    private var tokens: [UInt32: String] = [:]
    /// Called when the user presses a notification or its button, with the notification's number.
    var onPress: (@BusActor (UInt32) -> Void)?

    private static let name = "org.freedesktop.Notifications"
    private static let path = "/org/freedesktop/Notifications"
    private static let panel = "org.example.UbiquitousStore.Settings"

    /// - Throws: `BusError`.
    init(_ bus: BusConnection) async throws {
        self.bus = bus
        try await listen("ActivationToken") { desktop, signal in
            let number = try signal.readUInt32()
            // Only one token is in use at a time.
            desktop.tokens = [number: try signal.readString()]
        }
        try await listen("ActionInvoked") { desktop, signal in desktop.onPress?(try signal.readUInt32()) }
    }

    isolated deinit {}

    private func listen(
        _ member: String, _ handler: @escaping @BusActor (Desktop, Message) throws -> Void
    ) async throws {
        let rule = "type='signal',sender='\(Self.name)',path='\(Self.path)',interface='\(Self.name)',member='\(member)'"
        matches.append(try await bus.addMatch(rule) { [weak self] in if let self { try? handler(self, $0) } })
    }

    /// Shows a notification with a button that opens the panel.
    ///
    /// - Parameter former: the notification that it replaces; 0 for none.
    /// - Returns: the notification's number.
    /// - Throws: `BusError` if there is no notification server.
    func notify(_ trouble: Trouble, replacing former: UInt32) async throws -> UInt32 {
        try await bus.call(
            Self.name, Self.path, Self.name, "Notify",
            build: { call in
                try call.append("Settings Sync")
                try call.append(former)
                try call.append(Self.panel)
                try call.append(trouble.title)
                try call.append(Self.escaped(trouble.text))
                try call.append(strings: ["default", tr("Open"), "open", tr("Open Settings Sync")])
                try call.container("a", "{sv}" as StaticString) {
                    try call.append(hint: "desktop-entry", Self.panel)
                    try call.append(hint: "category", "network.error")
                }
                try call.append(Int32(-1))
            }, decode: { try $0.readUInt32() })
    }

    /// Withdraws a notification.
    func withdraw(_ number: UInt32) async {
        // It may be closed already.
        try? await bus.call(Self.name, Self.path, Self.name, "CloseNotification") { try $0.append(number) }
    }

    /// Opens the panel at a page; the bus starts the panel if it isn't running.
    ///
    /// - Parameter number: the notification that was pressed. Its token lets the window come to the front.
    func openPanel(at page: String, from number: UInt32) async throws {
        let token = tokens.removeValue(forKey: number)
        try await bus.call(
            Self.panel, "/org/example/UbiquitousStore/Settings", "org.freedesktop.Application", "ActivateAction"
        ) { call in
            try call.append("show-\(page)")
            try call.container("a", "v" as StaticString) {}
            try call.container("a", "{sv}" as StaticString) {
                guard let token else { return }
                // Before GTK 4.10, the token is read under its older name.
                for name in ["activation-token", "desktop-startup-id"] { try call.append(hint: name, token) }
            }
        }
    }

    /// Escapes a text, because the server reads a notification's text as markup.
    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }
}

extension BusConnection {
    fileprivate func call(
        _ name: String, _ path: String, _ interface: String, _ member: String,
        _ build: @BusActor (Message) throws -> Void
    ) async throws {
        try await call(name, path, interface, member, build: build, decode: { _ in })
    }
}

extension Message {
    fileprivate func append(hint name: String, _ text: String) throws {
        try container("e", "sv" as StaticString) {
            try append(name)
            try container("v", "s" as StaticString) { try append(text) }
        }
    }
}
