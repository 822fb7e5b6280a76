// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import ServerTesting
import StoreBus
import Testing
import UbiquitousStoreTesting

/// How polling depends on the user's presence, the network and the power profile, which the test simulates on the bus.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct SurroundingsTests {
    private nonisolated static let kind = [WebDAVServer.Kind.lighttpd, .apache, .nginx, .rclone].first {
        $0.program != nil
    }
    private nonisolated static let isMissing: Comment =
        "no WebDAV server is installed; script/bootstrap --all installs them"

    /// Runs a test with a device signed in to a server that gives no hints, and with simulated system services.
    private func withNeighbours(
        _ names: [String], _ settings: String = "", _ body: @BusActor (AccountClient, Neighbours) async throws -> Void
    ) async throws {
        let server = try WebDAVServer(#require(Self.kind), access: .basic)
        let directory = try TemporaryDirectory()
        try Data("[Sync]\n\(settings)".utf8).write(to: URL(filePath: directory.path + "/settings"))
        try await withTwoDevices {
            $0.arguments += ["--configuration", directory.path + "/settings"]
        } _: { devices in
            let account = try devices.account(devices.laptop)
            let neighbours = try await Neighbours(devices.laptop.bus, names)
            try await account.join(
                server.url + "/sync",
                ["user": .string(Text(WebDAVServer.user)), "password": .string(Text(WebDAVServer.password))])
            try await body(account, neighbours)
        }
    }

    /// Returns the seconds from the last poll to the next; -1 if none is due.
    private func interval(_ account: AccountClient) async throws -> Int {
        let properties = try await account.client.properties(account.path, AccountClient.interface)
        guard properties["State"] == "idle", case .integer(let last) = properties["LastPullUSec"],
            case .integer(let next) = properties["NextSyncUSec"], next > 0
        else { return -1 }
        return Int(((Double(next) - Double(last)) / 1e6).rounded())
    }

    private func expect(
        _ account: AccountClient, interval seconds: Int, _ sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await eventually("looks are \(seconds) s apart") { try await abs(interval(account) - seconds) <= 3 }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `where nobody knows who is there, a remote is looked at as it always was`() async throws {
        try await withNeighbours([]) { account, neighbours in
            try await expect(account, interval: 300)
            // The services may start later.
            try await neighbours.begin(Neighbours.logind)
            try await expect(account, interval: 30)
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `a remote is looked at often while the person is there, and at once when that person comes`() async throws {
        try await withNeighbours([Neighbours.logind]) { account, neighbours in
            try await expect(account, interval: 30)
            for change in [\Session.isLocked, \.isIdle] {
                neighbours.session[keyPath: change] = true
                try await neighbours.tellOfSession()
                try await expect(account, interval: 300)
                let last = try await account.property("LastPullUSec")
                neighbours.session[keyPath: change] = false
                try await neighbours.tellOfSession()
                try await eventually("it is looked") { try await account.property("LastPullUSec") != last }
                try await expect(account, interval: 30)
            }
            neighbours.isLoggedIn = false
            try await neighbours.tellOfLogin()
            try await expect(account, interval: 900)
            let last = try await account.property("LastPullUSec")
            neighbours.isLoggedIn = true
            try await neighbours.tellOfLogin()
            try await eventually("it is looked") { try await account.property("LastPullUSec") != last }
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `a remote is looked at when the machine wakes up, and not for whoever isn't logged in if so set`()
        async throws
    {
        try await withNeighbours([Neighbours.logind], "AbsentPoll=0\nPresentPoll=1h\nLongestPoll=2h\n") {
            account, neighbours in
            try await expect(account, interval: 3600)
            let last = try await account.property("LastPullUSec")
            try await neighbours.tell("/org/freedesktop/login1", "PrepareForSleep", of: Neighbours.logind + ".Manager")
            {
                try $0.append(false)
            }
            try await eventually("it is looked") { try await account.property("LastPullUSec") != last }
            neighbours.isLoggedIn = false
            try await neighbours.tellOfLogin()
            try await eventually("nothing is due") { try await account.property("NextSyncUSec") == .integer(0) }
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `a metered network and saving power slow sync down, which is said, and SyncNow syncs all the same`()
        async throws
    {
        try await withNeighbours([Neighbours.logind, Neighbours.network, Neighbours.power], "SparingPace=20min\n") {
            account, neighbours in
            try await expect(account, interval: 30)
            #expect(try await account.property("SlowedBy") == .array([]))
            neighbours.metered = 3
            try await neighbours.tellOfNetwork()
            try await expect(account, interval: 1200)
            #expect(try await account.property("SlowedBy") == .array(["metered-network"]))
            neighbours.profile = "power-saver"
            try await neighbours.tellOfPower()
            try await eventually("it is said") {
                try await account.property("SlowedBy") == .array(["metered-network", "power-saver"])
            }
            let last = try await account.property("LastPullUSec")
            try await account.syncNow()
            #expect(try await account.property("LastPullUSec") != last)
            neighbours.metered = 4
            try await neighbours.tellOfNetwork()
            try await eventually("it is said") {
                try await account.property("SlowedBy") == .array(["power-saver"])
            }
            try await expect(account, interval: 1200)
            // A service that has exited slows nothing.
            try await neighbours.end(Neighbours.power)
            try await expect(account, interval: 30)
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `signals that others send in the name of logind do nothing`() async throws {
        try await withNeighbours([Neighbours.logind], "PresentPoll=1h\nLongestPoll=2h\n") { account, neighbours in
            try await expect(account, interval: 3600)
            let last = try await account.property("LastPullUSec")
            let stranger = try await Neighbours(neighbours.bus, [])
            try await stranger.tell("/org/freedesktop/login1", "PrepareForSleep", of: Neighbours.logind + ".Manager") {
                try $0.append(false)
            }
            // A genuine signal, which the bus delivers after the forged one.
            neighbours.session.isLocked = true
            try await neighbours.tellOfSession()
            try await expect(account, interval: 7200)
            #expect(try await account.property("LastPullUSec") == last)
        }
    }
}

/// A session's properties in logind.
struct Session {
    var isIdle = false
    var isLocked = false
}

/// Simulated services that know whether a user is present and what to save.
@BusActor
final class Neighbours {
    static let logind = "org.freedesktop.login1"
    static let network = "org.freedesktop.NetworkManager"
    static let power = "net.hadess.PowerProfiles"

    let bus: PrivateBus
    var session = Session()
    var isLoggedIn = true
    var metered: UInt32 = 2
    var profile = "balanced"
    private let connection: BusConnection
    private var slots: [Slot] = []

    private static let sessionPath = "/org/freedesktop/login1/session/_31"

    init(_ bus: PrivateBus, _ names: [String]) async throws {
        self.bus = bus
        connection = try BusConnection.open(bus.busAddress, description: "neighbours")
        slots = [
            try connection.register(Self.manager, at: "/org/freedesktop/login1", self),
            try connection.register(Self.sessions, at: Self.sessionPath, self),
            try connection.register(Self.networks, at: "/org/freedesktop/NetworkManager", self),
            try connection.register(Self.profiles, at: "/net/hadess/PowerProfiles", self),
        ]
        for name in names { try await begin(name) }
    }

    func begin(_ name: String) async throws { try await connection.names.request(name) }

    func end(_ name: String) async throws { try await connection.names.release(name) }

    private static let manager = Interface<Neighbours>(
        logind + ".Manager",
        [
            .method("ListSessions", out: ["sessions": "a(susso)"]) { neighbours, call in
                try call.reply { reply in
                    try reply.container("a", "(susso)") {
                        guard neighbours.isLoggedIn else { return }
                        try reply.container("r", "susso") {
                            try reply.append("1")
                            try reply.append(geteuid())
                            try reply.append("ada")
                            try reply.append("seat0")
                            try reply.append(objectPath: sessionPath)
                        }
                    }
                }
            }
        ])

    private static let sessions = Interface<Neighbours>(
        logind + ".Session",
        [
            .unguardedProperty("Class", "s", changes: .silently) { _, message, _ in try message.append("user") },
            .unguardedProperty("Active", "b", changes: .silently) { _, message, _ in try message.append(true) },
            .unguardedProperty("IdleHint", "b", changes: .silently) { played, message, _ in
                try message.append(played.session.isIdle)
            },
            .unguardedProperty("LockedHint", "b", changes: .silently) { played, message, _ in
                try message.append(played.session.isLocked)
            },
        ])

    private static let networks = Interface<Neighbours>(
        network,
        [
            .unguardedProperty("Metered", "u", changes: .silently) { played, message, _ in
                try message.append(played.metered)
            }
        ])

    private static let profiles = Interface<Neighbours>(
        power,
        [
            .unguardedProperty("ActiveProfile", "s", changes: .silently) { played, message, _ in
                try message.append(played.profile)
            }
        ])

    // MARK: Sending signals

    func tellOfSession() async throws { try await tellOfProperties(Self.sessionPath, Self.logind + ".Session") }
    func tellOfNetwork() async throws { try await tellOfProperties("/org/freedesktop/NetworkManager", Self.network) }
    func tellOfPower() async throws { try await tellOfProperties("/net/hadess/PowerProfiles", Self.power) }

    func tellOfLogin() async throws {
        let member = isLoggedIn ? "SessionNew" : "SessionRemoved"
        try await tell("/org/freedesktop/login1", member, of: Self.logind + ".Manager") {
            try $0.append("1")
            try $0.append(objectPath: Self.sessionPath)
        }
    }

    private func tellOfProperties(_ path: String, _ interface: String) async throws {
        try await tell(path, "PropertiesChanged", of: "org.freedesktop.DBus.Properties") { signal in
            try signal.append(interface)
            try signal.container("a", "{sv}") {}
            try signal.container("a", "s") {}
        }
    }

    /// Sends the service a signal.
    func tell(_ path: String, _ member: String, of interface: String, _ build: (Message) throws -> Void) async throws {
        let signal = try connection.newSignal(path, interface, member, to: BusNames.service)
        try build(signal)
        try connection.send(signal)
    }
}
