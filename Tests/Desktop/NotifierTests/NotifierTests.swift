// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import SDBus
import Testing
import UbiquitousStoreTesting

/// The built program on a private bus, with a service and a notification server.
@BusActor
struct NotifierTests {
    /// A device that is signed in to a folder.
    @BusActor
    private final class Desk {
        static let notes = "org.example.Notes"
        let bus: PrivateBus
        let device: Device
        let client: BusClient
        let desktop: FakeDesktop
        let folder: TemporaryDirectory
        let log: String

        init() async throws {
            bus = try await .start()
            var options = Device.Options()
            options.manifests = [ManifestText(Self.notes)]
            device = try await .start(on: bus, options)
            client = try BusClient(bus)
            desktop = try await FakeDesktop(on: bus)
            folder = try TemporaryDirectory()
            log = folder.path + ".log"
            try await client.account.join("folder://" + folder.path)
            try await client.account.syncNow()
        }

        func start() throws -> ChildProcess {
            let environment = ProcessInfo.processInfo.environment.merging([
                "DBUS_SESSION_BUS_ADDRESS": bus.address, "UBIQUITOUS_STORE_BUS": bus.address, "LC_ALL": "C.UTF-8",
                "XDG_STATE_HOME": device.directory.path + "/notifier-state",
                "XDG_DATA_HOME": device.directory.path + "/notifier-data",
            ]) { $1 }
            return try ChildProcess([ChildProcess.built("ubiquitous-store-notifier")], environment: environment)
        }

        /// Deletes the account's files, and makes the service notice.
        func loseAccount() async throws {
            for file in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
                try FileManager.default.removeItem(atPath: folder.path + "/" + file)
            }
            _ = try? await client.account.syncNow()
        }

        func shows(_ count: Int) async throws {
            try await eventually("\(count) notifications are shown") { desktop.notifications.count == count }
        }
    }

    @Test func `a remote that is gone is told once, and the button opens the panel at the account`() async throws {
        let desk = try await Desk()
        let notifier = try desk.start()
        try await desk.loseAccount()
        try await desk.shows(1)
        let notification = try #require(desk.desktop.notifications.first)
        #expect(notification.title == "Settings Sync: The Account Is Gone")
        try desk.desktop.press(notification.number)
        try await eventually("the panel is opened") {
            desk.desktop.actions == [["show-account", "token-1", "token-1"]]
        }
        _ = try? await desk.client.account.syncNow()
        notifier.kill()
        // A second notifier knows what the first has shown. It ends with the account, after it has checked once.
        let next = try desk.start()
        try await eventually("it watches") {
            try await desk.bus.hasOwner("org.example.UbiquitousStore.Notifier")
        }
        try await desk.client.account.signOut()
        #expect(try await next.finish() == .code(0))
        #expect(desk.desktop.notifications.count == 1)
    }

    @Test func `a notification goes away when what it tells of is mended`() async throws {
        let desk = try await Desk()
        let notifier = try desk.start()
        try await desk.loseAccount()
        try await desk.shows(1)
        try await desk.client.account.resolve("local")
        try await eventually("it is withdrawn") { desk.desktop.withdrawn == [1] }
        #expect(notifier.exit == nil)
    }

    @Test func `an account that asks for its words is told, and the button opens the panel there`() async throws {
        let desk = try await Desk()
        let safe = try desk.device.directory.makeDirectory("safe")
        try await desk.client.account.join("folder://" + safe, ["encrypt": .boolean(true)])
        let phrase = try await desk.client.account.recoveryPhrase()
        try await desk.device.loseKey()
        let notifier = try desk.start()
        try await desk.shows(1)
        #expect(desk.desktop.notifications[0].title == "Settings Sync: The Recovery Words Are Missing")
        try desk.desktop.press(1)
        try await eventually("the panel is opened") {
            desk.desktop.actions == [["show-account", "token-1", "token-1"]]
        }
        try await desk.client.account.unlock(phrase)
        try await eventually("it is withdrawn") { desk.desktop.withdrawn == [1] }
        #expect(notifier.exit == nil)
    }

    @Test func `what lasts longer than a day is told again, by the same notification`() async throws {
        let desk = try await Desk()
        try await desk.client.store(Desk.notes).set("text", .data([UInt8](repeating: 1, count: 1 << 20)))
        let notifier = try desk.start()
        try await desk.shows(1)
        let file = desk.device.directory.path + "/notifier-state/ubiquitous-store/notified"
        // The notifier writes it once the desktop has answered.
        try await eventually("the cause is noted") { FileManager.default.fileExists(atPath: file) }
        let cause = try String(contentsOfFile: file, encoding: .utf8).drop { $0 != " " }
        try "\(Int(time(nil)) - 90_000)\(cause)".write(toFile: file, atomically: true, encoding: .utf8)
        try await eventually("it is told again") {
            // The account tells of a pause. It doesn't of a sync that finds nothing.
            try await desk.client.account.setPaused(true)
            try await desk.client.account.setPaused(false)
            return desk.desktop.notifications.count == 2
        }
        #expect(desk.desktop.notifications.map(\.replaced) == [0, 1])
        #expect(notifier.exit == nil)
    }

    @Test func `a full store is told, with its app's name`() async throws {
        let desk = try await Desk()
        let applications = try desk.device.directory.makeDirectory("notifier-data/applications")
        try "[Desktop Entry]\nType=Application\nName=Notebook\nExec=true\n".write(
            toFile: applications + "/\(Desk.notes).desktop", atomically: false, encoding: .utf8)
        let store = try desk.client.store(Desk.notes)
        try await store.set("text", .data([UInt8](repeating: 1, count: 1 << 20)))
        let notifier = try desk.start()
        try await desk.shows(1)
        #expect(desk.desktop.notifications[0].text.hasPrefix("Notebook can't add settings"))
        try desk.desktop.press(1)
        try await eventually("the panel is opened") { desk.desktop.actions == [["show-apps", "token-1", "token-1"]] }
        #expect(notifier.exit == nil)
    }

    @Test func `without an account it ends by itself`() async throws {
        let desk = try await Desk()
        try await desk.client.account.signOut()
        #expect(try await desk.start().finish() == .code(0))
    }

    @Test func `signing out ends it`() async throws {
        let desk = try await Desk()
        let notifier = try desk.start()
        try await desk.loseAccount()
        try await desk.shows(1)
        try await desk.client.account.signOut()
        #expect(try await notifier.finish() == .code(0))
        #expect(desk.desktop.withdrawn == [1])
    }

    @Test(arguments: [SIGTERM, SIGINT, SIGHUP])
    func `a session that ends can end it with any signal`(signal: Int32) async throws {
        let desk = try await Desk()
        let notifier = try desk.start()
        try await eventually("it watches") {
            try await desk.bus.hasOwner("org.example.UbiquitousStore.Notifier")
        }
        Foundation.kill(notifier.pid, signal)
        #expect(try await notifier.finish() == .signal(signal))
    }

    @Test func `of two only one watches`() async throws {
        let desk = try await Desk()
        let first = try desk.start()
        try await eventually("the first watches") {
            try await desk.bus.hasOwner("org.example.UbiquitousStore.Notifier")
        }
        #expect(try await desk.start().finish() == .code(0))
        #expect(first.exit == nil)
    }

    @Test func `without a service there is nothing to watch`() async throws {
        let desk = try await Desk()
        desk.device.kill()
        #expect(try await desk.start().finish() == .code(0))
    }
}

extension PrivateBus {
    /// Whether a name has an owner.
    @BusActor
    fileprivate func hasOwner(_ name: String) async throws -> Bool {
        let bus = try BusConnection.open(busAddress, description: "test")
        defer { bus.close() }
        let path = "/org/freedesktop/DBus"
        return try await bus.call(
            "org.freedesktop.DBus", path, "org.freedesktop.DBus", "NameHasOwner", build: { try $0.append(name) },
            decode: { try $0.readBool() })
    }
}
