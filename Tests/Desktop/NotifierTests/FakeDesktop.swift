// SPDX-License-Identifier: Apache-2.0

import SDBus
import UbiquitousStoreTesting

/// A notification server and a settings panel that record what they are asked for.
@BusActor
final class FakeDesktop {
    /// A notification that was shown.
    struct Notification: Equatable {
        let number: UInt32
        /// The number of the notification that it replaces; 0 for none.
        let replaced: UInt32
        let title: String
        let text: String
    }

    private(set) var notifications: [Notification] = []
    private(set) var withdrawn: [UInt32] = []
    /// Activated actions of the panel, with the values of their data: the activation token under both of its names.
    private(set) var actions: [[String]] = []
    private var peer: Peer?
    private let bus: BusConnection
    private var slots: [Slot] = []

    private static let path = "/org/freedesktop/Notifications"
    private static let name = "org.freedesktop.Notifications"

    init(on bus: PrivateBus) async throws {
        self.bus = try BusConnection.open(bus.busAddress, description: "fake desktop")
        slots = [
            try self.bus.register(Self.shower, at: Self.path, self),
            try self.bus.register(Self.panel, at: "/org/example/UbiquitousStore/Settings", self),
        ]
        try await self.bus.names.request(Self.name)
        try await self.bus.names.request("org.example.UbiquitousStore.Settings")
    }

    isolated deinit {}

    /// Presses the button of a notification.
    func press(_ number: UInt32) throws {
        guard let peer else { return }
        for (member, text) in [("ActivationToken", "token-\(number)"), ("ActionInvoked", "open")] {
            try bus.signal(Self.path, Self.name, member, to: peer) { signal in
                try signal.append(number)
                try signal.append(text)
            }
        }
    }

    private static let shower = Interface<FakeDesktop>(
        name,
        [
            .method(
                "Notify",
                in: [
                    "app": "s", "replaces": "u", "icon": "s", "summary": "s", "body": "s", "actions": "as",
                    "hints": "a{sv}", "timeout": "i",
                ], out: ["id": "u"]
            ) { desktop, call in try desktop.note(call) },
            .method("CloseNotification", in: ["id": "u"]) { desktop, call in
                desktop.withdrawn.append(try call.message.readUInt32())
                try call.reply()
            },
        ])

    private func note(_ call: MethodCall) throws {
        let message = call.message
        _ = try message.readString()
        let replaced = try message.readUInt32()
        _ = try message.readString()
        let number = UInt32(notifications.count + 1)
        notifications.append(
            Notification(
                number: number, replaced: replaced, title: try message.readString(), text: try message.readString()))
        peer = call.peer
        try call.reply { try $0.append(number) }
    }

    private static let panel = Interface<FakeDesktop>(
        "org.freedesktop.Application",
        [
            .method("ActivateAction", in: ["action": "s", "parameters": "av", "data": "a{sv}"]) { desktop, call in
                var parts = [try call.message.readString()]
                try call.message.skip()
                try call.message.readDictionary { _ in
                    try call.message.enterVariant()
                    parts.append(try call.message.readString())
                    try call.message.exitContainer()
                }
                desktop.actions.append(parts)
                try call.reply()
            }
        ])
}
