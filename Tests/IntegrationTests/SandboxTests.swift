// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import SeededRandom
import StoreBus
import Testing
import UbiquitousStoreTesting

/// What an app in a flatpak's scope may do. `packaging/e2e/checks` tests a whole flatpak.
@BusActor
@Suite(.timeLimit(.minutes(30)), .enabled(if: Users.areSeveral, Users.needsRoot), .enabled(if: SandboxScope.isPossible))
struct SandboxTests {
    private static let manager = (BusNames.managerPath, BusNames.managerInterface)
    private static let account = (BusNames.usersPath + "/self", BusNames.accountInterface)

    @Test func `a flatpak without a manifest has the store of its name, and no other`() async throws {
        try await withMachine { machine in
            let app = try SandboxScope("org.example.My-Game", on: machine)
            #expect(try await app.call(Self.manager, "OpenStore", "sa{sv}", "", "0").output.contains(#"My-Game""#))
            let store = (try app.storePath("org.example.My-Game"), BusNames.storeInterface)
            #expect(try await app.call(store, "SetValue", "sv", "level", "i", "3").output.hasPrefix("t "))
            #expect(try await app.call(store, "GetValue", "s", "level").output == "v x 3")
            #expect(try await app.call(store, "Subscribe", "t", "0").exit == .code(0))
            #expect(try await app.call(Self.manager, "ListStores", "t", "0").output.hasPrefix("a(uso) 1 "))

            try await machine.store().set("key", .integer(1))
            let other = (try app.storePath(notes), BusNames.storeInterface)
            #expect(try await app.call(other, "GetValue", "s", "key").error.contains("Unknown object"))
            let refused = try await app.call(Self.manager, "OpenStore", "sa{sv}", notes, "0")
            #expect(refused.error.contains("No installed manifest declares"))
            let tree = try await app.call(
                (BusNames.usersPath, "org.freedesktop.DBus.Introspectable"), "Introspect"
            ).output
            #expect(!tree.contains("Notes"))
        }
    }

    @Test func `a flatpak has the store that its app's manifest declares, with the app outside`() async throws {
        try await withMachine {
            $0.manifests = [
                ManifestText("org.example.Shared", application: "org.example.Notes"), ManifestText("org.example.Game"),
            ]
        } _: { machine in
            let app = try SandboxScope("org.example.Notes", on: machine)
            let store = (try app.storePath("org.example.Shared"), BusNames.storeInterface)
            #expect(try await app.call(store, "SetValue", "sv", "key", "s", "text").exit == .code(0))
            #expect(try await machine.store("org.example.Shared").value("key") == .string("text"))
            // An app with a manifest has no store of its own name.
            let own = try await app.call(Self.manager, "OpenStore", "sa{sv}", "org.example.Notes", "0")
            #expect(own.error.contains("No installed manifest declares"))
        }
    }

    @Test func `a flatpak doesn't get a store of its name that another app declares`() async throws {
        try await withMachine {
            $0.manifests = [ManifestText("org.example.Game", application: "org.example.Other")]
        } _: { machine in
            let app = try SandboxScope("org.example.Game", on: machine)
            let refused = try await app.call(Self.manager, "OpenStore", "sa{sv}", "org.example.Game", "0")
            #expect(refused.error.contains("No installed manifest declares"))
        }
    }

    @Test func `a flatpak learns its account's state, has it sync, and doesn't steer it or learn where it is`()
        async throws
    {
        let place = try TemporaryDirectory()
        try await withMachine { machine in
            let client = try machine.client(as: Users.service)
            let folder = try place.makeDirectory("own", mode: 0o700, owner: Users.service)
            try await client.account.join("folder://\(folder)")
            let app = try SandboxScope("org.example.Game", on: machine, as: Users.service)
            let properties = (Self.account.0, "org.freedesktop.DBus.Properties")
            func property(_ name: String) async throws -> String {
                try await app.call(properties, "Get", "ss", BusNames.accountInterface, name).output
            }
            #expect(try await property("State").hasPrefix("v s \""))
            #expect(try await property("Backend") == #"v s """#)
            #expect(try await app.call(Self.account, "SyncNow", "t", "0").exit == .code(0))
            #expect(try await app.call(Self.account, "Subscribe", "t", "0").exit == .code(0))
            for method in [["SetPaused", "b", "true"], ["SignOut", "a{sv}", "0"], ["ListDevices"]] {
                let answer = try await app.call(Self.account, method)
                #expect(answer.error.contains("Access denied"), "\(method)")
            }
            rename(folder, folder + "-away")
            let failed = try await app.call(Self.account, "SyncNow", "t", "0")
            #expect(failed.error.contains("outside of sandboxes"), "\(failed.error)")
            try await eventually("the account has an error") {
                try await property("LastErrorName").contains("Backend")
            }
            #expect(try await property("LastErrorMessage").contains("outside of sandboxes"))
            let store = (try app.storePath("org.example.Game"), BusNames.storeInterface)
            let waiting = try await app.call(store, "Synchronize", "t", "1")
            #expect(waiting.error.contains("outside of sandboxes"), "\(waiting.error)")
            let whole = try await app.call(properties, "GetAll", "s", BusNames.accountInterface)
            #expect(whole.exit == .code(0) && !whole.output.contains(place.path), "\(whole)")
        }
    }

    @Test func `a flatpak loses the store of a registered manifest that a system manifest takes over`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            try await client.manager("RegisterManifest") {
                try $0.append(bytes: Array(ManifestText("org.example.Later", application: "org.example.Foo").xml.utf8))
                try $0.appendDictionary {}
            }
            let app = try SandboxScope("org.example.Foo", on: machine)
            let store = (try app.storePath("org.example.Later"), BusNames.storeInterface)
            #expect(try await app.call(store, "SetValue", "sv", "key", "s", "own").exit == .code(0))
            try machine.device.install(ManifestText("org.example.Later").xml, as: "later.plist")
            let secret = try machine.store("org.example.Later")
            try await eventually("the manifest is read") {
                try await app.call(store, "GetValue", "s", "key").exit != .code(0)
            }
            try await secret.set("key", .string("secret"))
            #expect(try await app.call(store, "GetValue", "s", "key").error.contains("Unknown object"))
            #expect(!(try await app.call(Self.manager, "Identify").output.contains("Later")))
        }
    }

    @Test func `a flatpak can read every property, alone and with the others`() async throws {
        try await withMachine { machine in
            let app = try SandboxScope("org.example.Game", on: machine)
            let domain = try BusNames.domainPath(uid: Users.client, domain: "org.example.Game")
            for (path, interface) in [
                (BusNames.managerPath, BusNames.managerInterface), (Self.account.0, BusNames.accountInterface),
                (try app.storePath("org.example.Game"), BusNames.storeInterface),
                (domain, BusNames.domainInterface),
                (BusNames.defaultsRoot + "/self", BusNames.defaultsInterface),
            ] {
                let properties = (path, "org.freedesktop.DBus.Properties")
                let whole = try await app.call(properties, "GetAll", "s", interface)
                #expect(whole.exit == .code(0), "\(path): \(whole)")
                let tree = try await app.call((path, "org.freedesktop.DBus.Introspectable"), "Introspect")
                    .output.replacing("\\\"", with: "\"")
                let names = tree.matches(of: /<property name="(\w+)"/).map { String($0.1) }
                for name in names where whole.output.contains("\"\(name)\"") {
                    let one = try await app.call(properties, "Get", "ss", interface, name)
                    #expect(one.exit == .code(0), "\(name): \(one)")
                }
                #expect(names.count { whole.output.contains("\"\($0)\"") } > 0, "\(path)")
            }
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64], SandboxScope.Confinement.allCases)
    func `whatever a sandboxed app calls while its account fails, no answer says where that is`(
        _ seed: UInt64, in confinement: SandboxScope.Confinement
    ) async throws {
        let place = try TemporaryDirectory()
        try await withMachine { machine in
            var random = SplitMix(seed: seed)
            let client = try machine.client(as: Users.service)
            let folder = try place.makeDirectory("own", mode: 0o700, owner: Users.service)
            try await client.account.join("folder://\(folder)")
            let app = try SandboxScope("org.example.Game", on: machine, as: Users.service, confinement)
            let store = (try app.storePath("org.example.Game"), BusNames.storeInterface)
            func properties(_ path: String) -> (String, String) { (path, "org.freedesktop.DBus.Properties") }
            let calls: [((String, String), [String])] = [
                (Self.account, ["SyncNow", "t", "0"]), (store, ["Synchronize", "t", "1"]),
                (store, ["SetValue", "sv", "key", "i", "1"]), (store, ["GetSnapshot", "tt", "0", "0"]),
                (store, ["GetHistory", "st", "key", "0"]), (Self.account, ["SignIn", "sa{sv}", "", "0"]),
                (Self.account, ["SignIn", "sa{sv}", "folder:///nowhere", "0"]),
                (Self.account, ["Resolve", "s", "local"]),
                (Self.account, ["CheckBackend", "sa{sv}", "", "0"]), (Self.account, ["ListDevices"]),
                (properties(Self.account.0), ["GetAll", "s", BusNames.accountInterface]),
                (properties(BusNames.managerPath), ["GetAll", "s", BusNames.managerInterface]),
                (properties(store.0), ["GetAll", "s", BusNames.storeInterface]),
                (Self.manager, ["OpenStore", "sa{sv}", "org.example.Game", "0"]), (Self.manager, ["Identify"]),
                (Self.manager, ["ListStores", "t", "0"]),
                (Self.manager, ["RemoveStore", "st", "org.example.Game", "1"]),
            ]
            let damages: [() -> Void] = [
                { rename(folder, folder + "-away") },
                { mkdir(folder, 0o000) },
                { chmod(folder, 0o700) },
                {
                    for file in (try? FileManager.default.subpathsOfDirectory(atPath: folder)) ?? [] {
                        truncate(folder + "/" + file, 3)
                    }
                },
            ]
            for _ in 0..<40 {
                if random.next() % 5 == 0 { damages[Int(random.next() % UInt64(damages.count))]() }
                let (object, arguments) = calls[Int(random.next() % UInt64(calls.count))]
                let answer = try await app.call(object, arguments)
                #expect(!(answer.output + answer.error).contains(place.path), "\(arguments): \(answer)")
                // An unknown sandbox has neither accounts nor stores.
                let isThere = object.0 == BusNames.managerPath || confinement == .flatpak
                #expect(isThere || answer.exit != .code(0), "\(arguments): \(answer)")
            }
        }
    }
}

extension SandboxTests {
    @Test func `the command line in an unknown sandbox says why it finds nothing`() async throws {
        try await withMachine { machine in
            let app = try SandboxScope("org.example.Notes", on: machine, .snap)
            let program = try ChildProcess.built("ubiquitousctl")
            for words in [
                ["status"], ["stores"], ["account", "sync"], ["doctor"], ["defaults", "write", "a", "b", "c"],
            ] {
                let bus = "UBIQUITOUS_STORE_BUS=\(machine.bus.address)"
                let result = try await app.start(["env", bus, program] + words)
                #expect(result.exit == .code(3), "\(words) \(result)")
                #expect((result.output + result.error).contains("can't tell what sandbox"), "\(words) \(result)")
            }
        }
    }
}

/// The scope that flatpak or snapd makes for an app, in systemd's hierarchy of control groups.
final class SandboxScope {
    enum Confinement: CaseIterable {
        case flatpak, snap

        /// Returns the name of a scope.
        fileprivate func unit(_ application: String, _ number: UInt32) -> String {
            switch self {
            case .flatpak: "app-flatpak-\(application.replacing("-", with: "\\x2d"))-\(number).scope"
            case .snap: "snap.\(application).app-\(number).scope"
            }
        }
    }

    private let directory: String
    private let machine: Machine
    private let user: UInt32

    private static let hierarchy: String? = ["/sys/fs/cgroup/systemd", "/sys/fs/cgroup"].first { access($0, W_OK) == 0 }

    /// Whether control groups can be made on this machine.
    static var isPossible: Bool {
        guard let hierarchy else { return false }
        let trial = "\(hierarchy)/app-flatpak-trial-\(getpid()).scope"
        guard mkdir(trial, 0o755) == 0 else { return false }
        return access(trial + "/cgroup.procs", W_OK) == 0 && rmdir(trial) == 0
    }

    init(
        _ application: String, on machine: Machine, as user: UInt32? = Users.client,
        _ confinement: Confinement = .flatpak
    ) throws {
        let unit = confinement.unit(application, UInt32.random(in: 1...UInt32.max))
        directory = try #require(Self.hierarchy) + "/\(unit)"
        self.machine = machine
        self.user = try #require(user)
        try #require(mkdir(directory, 0o755) == 0)
    }

    deinit { rmdir(directory) }

    func storePath(_ identifier: String) throws -> String { try BusNames.storePath(uid: user, identifier: identifier) }

    /// Runs `busctl call` in the scope.
    func call(_ object: (path: String, interface: String), _ rest: String...) async throws -> ProgramResult {
        try await call(object, rest)
    }

    func call(_ object: (path: String, interface: String), _ rest: [String]) async throws -> ProgramResult {
        try await start(
            ["busctl", "--address=\(machine.bus.address)", "call", BusNames.service, object.path, object.interface]
                + rest)
    }

    /// Runs a program in the scope.
    func start(_ arguments: [String]) async throws -> ProgramResult {
        try await run(
            [
                "sh", "-c", "echo $$ > \"$1/cgroup.procs\" && shift && exec \"$@\"", "sh", directory, "setpriv",
                "--reuid=\(user)", "--clear-groups",
            ] + arguments)
    }
}
