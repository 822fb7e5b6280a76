// SPDX-License-Identifier: Apache-2.0

import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// Calls every member once. The other files test the details.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct MemberTests {
    // MARK: The service

    @Test func `OpenStore finds a store and says what applies`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            let (path, info) = try await client.manager("OpenStore") {
                try $0.append(notes)
                try $0.appendDictionary {}
            } decode: {
                (try $0.readString(), try $0.readValues().map { "\($0.key)=\($0.value)" }.sorted())
            }
            #expect(path == (try client.store(notes).path))
            let names = info.map { $0.prefix { $0 != "=" } }
            #expect(names == ["identifier", "initial-sync-done", "synchronized"])
            let name = await errorName { try await open("", client) }
            #expect(name == "AmbiguousIdentity")
            for identifier in ["org.example.Undeclared", "a/b", "\u{e9}", String(repeating: "a", count: 256)] {
                #expect(await errorName { try await open(identifier, client) } == "NotEntitled")
            }
            #expect(await errorName { try await open(notes, client, option: "x") } == "InvalidArgs")
        }
    }

    @Test func `an identifier that is nearly one names that one, and is logged once`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            for _ in 0..<2 {
                let refusal = await failure { try await open("A1B2C3D4E5." + notes, client) }
                #expect(refusal?.message.contains("Did you mean \"\(notes)\"") == true, "\(refusal?.message ?? "")")
            }
            for typo in [notes + "s", String(notes.dropLast(2)), notes.uppercased(), "x" + notes.dropFirst()] {
                let refusal = await failure { try await open(typo, client) }
                #expect(refusal?.message.contains("Did you mean \"\(notes)\"") == true, "\(refusal?.message ?? "")")
            }
            let other = await failure { try await open("org.example.Undeclared", client) }
            #expect(other?.message.contains(notes) == false)
            let lines = machine.device.log.split(separator: "\n").filter { $0.contains("A1B2C3D4E5.") }
            #expect(lines.count == 1 && lines.first?.contains("manifest") == true)
        }
    }

    private func open(_ identifier: String, _ client: BusClient, option: String? = nil) async throws {
        try await client.manager("OpenStore") { message in
            try message.append(identifier)
            try message.appendDictionary {
                if let option { try message.append(entry: option, .boolean(true)) }
            }
        }
    }

    @Test func `ListStores lists the caller's stores that hold something`() async throws {
        try await withMachine {
            $0.manifests.append(ManifestText("org.example.Other"))
        } _: { machine in
            let client = try machine.client()
            #expect(try await list(client).isEmpty)
            _ = try await client.store("org.example.Other").everything()
            for identifier in ["org.example.Other", notes] { try await client.store(identifier).set("k", .integer(1)) }
            #expect(
                try await list(client) == [
                    "\(client.uid) \(notes) \(client.store(notes).path)",
                    "\(client.uid) org.example.Other \(client.store("org.example.Other").path)",
                ]
            )
            #expect(await errorName { _ = try await list(client, 0x4) } == "InvalidArgs")
        }
    }

    @Test func `ListStores with 0x2 lists what is excluded from sync, also if it holds nothing`() async throws {
        try await withMachine {
            $0.manifests.append(ManifestText("org.example.Other"))
        } _: { machine in
            let client = try machine.client()
            try await client.store(notes).set("k", .integer(1))
            #expect(try await list(client, 0x2) == [])
            for identifier in [notes, "org.example.Other"] {
                try await client.account.setSynchronized(identifier, false)
            }
            #expect(
                try await list(client, 0x2).map { $0.split(separator: " ")[1] } == [notes[...], "org.example.Other"])
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `ListStores with 0x1 lists those of every user, to root alone`() async throws {
        try await withMachine { machine in
            for user in [Users.nobody, Users.daemon] { try await machine.store(as: user).set("k", .integer(1)) }
            let client = try machine.client(as: Users.nobody)
            #expect(await errorName { _ = try await list(client, 0x1) } == "AccessDenied")
            #expect(
                try await list(try machine.client(as: nil), 0x1).map { $0.split(separator: " ")[0] } == ["1", "65534"]
            )
        }
    }

    private func list(_ client: BusClient, _ flags: UInt64 = 0) async throws -> [String] {
        try await client.manager("ListStores") {
            try $0.append(flags)
        } decode: { answer in
            var stores: [String] = []
            _ = try answer.enterContainer("a", "(uso)")
            while try answer.enterContainer("r", "uso") {
                stores.append("\(try answer.readUInt32()) \(try answer.readString()) \(try answer.readString())")
                try answer.exitContainer()
            }
            return stores
        }
    }

    @Test func `RemoveStore has this device forget a store and its history`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            let generation = try await store.set("key", .integer(1))
            func remove(_ identifier: String, _ flags: UInt64 = 0) async throws {
                try await store.client.manager("RemoveStore") {
                    try $0.append(identifier)
                    try $0.append(flags)
                }
            }
            for identifier in ["org.example.Undeclared", "", "a/b"] {
                #expect(await errorName { try await remove(identifier) } == "NoSuchStore")
            }
            #expect(await errorName { try await remove(notes, 0x10) } == "InvalidArgs")
            try await remove(notes)
            #expect(try await list(store.client).isEmpty)
            #expect(try await store.everything().isEmpty)
            #expect(try await store.generation() >= generation)
            #expect(await errorName { try await remove(notes) } == "NoSuchStore")
            #expect(try await store.set("key", .integer(2)) > generation)
            try await machine.device.restart()
            #expect(try await store.everything() == ["key": .integer(2)])
        }
    }

    @Test func `RemoveStore with 0x1 takes the values, the history and the device's own with it`() async throws {
        try await withMachine({ $0.manifests = [ManifestText(notes, localKeys: ["window"])] }) { machine in
            let store = try machine.store()
            try await store.apply(["key": .integer(1), "other": .integer(1), "window": .integer(1)])
            let generation = try await store.set("key", .integer(2))
            try await store.subscribe(0x1)
            func remove() async throws {
                try await machine.client().manager("RemoveStore") {
                    try $0.append(notes)
                    try $0.append(0x1 as UInt64)
                }
            }
            try await remove()
            let signal = try await store.signal("the removal") { $0.reason == 16 }
            #expect(signal.keys == ["key", "other", "window"] && signal.generation == generation + 1)
            #expect(try await store.everything().isEmpty)
            #expect(try await store.snapshot(since: generation).removed == ["key", "other", "window"])
            #expect(try await store.history("key").isEmpty)
            #expect(try await list(store.client).isEmpty)
            #expect(await errorName { try await remove() } == "NoSuchStore")
            try await machine.device.restart()
            #expect(try await store.everything().isEmpty)
            #expect(try await store.history("key").isEmpty)
        }
    }

    @Test func `Identify says whom the service takes a caller for`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            let identity = try await client.manager("Identify") { _ in
            } decode: {
                Dictionary(uniqueKeysWithValues: try $0.readValues().map { ($0.key, $0.value) })
            }
            #expect(identity["uid"] == .integer(Int64(client.uid)))
            #expect(identity["engine"] == .string("host"))
            #expect(identity["entitled"] == .array([.string(Text(notes))]))
            #expect(identity["app-id"] != nil && identity["default-identifier"] != nil && identity.count == 6)
            #expect(identity["folder-roots"] == .array(["/"]))
        }
    }

    @Test func `the service's properties are what they are`() async throws {
        try await withMachine { machine in
            let properties = try await machine.client().properties(BusNames.managerPath, BusNames.managerInterface)
            #expect(properties["Limits"] == .dictionary(limits))
            #expect(properties["Features"] == .array(["encryption", "etcd", "etcds", "folder", "webdav", "webdavs"]))
            guard case .string(let version) = properties["Version"] else { throw BusError.failed("no version") }
            #expect(version.string.split(separator: ".").count == 3)
            #expect(properties["SettingsErrors"] == .array([]) && properties["Warnings"] == .array([]))
            #expect(properties.count == 5)
        }
    }

    private let limits: [Text: Value] = [
        "keys": .integer(1024), "total-bytes": .integer(1_048_576), "value-bytes": .integer(1_048_576),
        "key-length": .integer(128), "depth": .integer(16),
    ]

    // MARK: A store

    @Test func `a new store's properties are those of an empty one`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            var properties = try await store.client.properties(store.path, BusNames.storeInterface)
            #expect(properties.removeValue(forKey: "Generation") != nil)
            #expect(
                properties == [
                    "Identifier": .string(Text(notes)), "User": .integer(Int64(store.client.uid)),
                    "KeyCount": .integer(0), "BytesUsed": .integer(0), "Limits": .dictionary(limits),
                    "PendingChanges": .integer(0), "InitialSyncDone": .boolean(false),
                    "Synchronized": .boolean(true),
                ]
            )
        }
    }

    @Test func `properties can't be written`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            for (path, interface, name) in [
                (store.path, BusNames.storeInterface, "KeyCount"),
                (BusNames.managerPath, BusNames.managerInterface, "Version"),
                (store.client.account.path, BusNames.accountInterface, "State"),
            ] {
                let error = await errorName {
                    try await store.client.call(path, "org.freedesktop.DBus.Properties", "Set") {
                        try $0.append(interface)
                        try $0.append(name)
                        try $0.append(variant: .string("x"))
                    }
                }
                #expect(error == "PropertyReadOnly")
            }
        }
    }

    @Test func `both paths of a store are one store`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            let alias = StoreClient(client, path: try BusNames.storePath(uid: nil, identifier: notes))
            try await alias.set("key", .integer(1))
            #expect(try await client.store(notes).value("key") == .integer(1))
            #expect(try await alias.property("User") == .integer(Int64(client.uid)))
        }
    }

    @Test func `Synchronize answers that what stays here stays here`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            #expect(try await store.synchronize() == true)
            try await store.set("key", .integer(1))
            #expect(try await store.synchronize() == false)
            #expect(await errorName { try await store.synchronize(0x1) } == "NotSignedIn")
            #expect(await errorName { try await store.synchronize(0x2) } == "InvalidArgs")
        }
    }

    @Test func `GetHistory gives what a key held before, newest first, at most sixteen`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            #expect(try await history("key", store).isEmpty)
            for number in 0..<20 { try await store.set("key", .integer(Int64(number))) }
            try await store.set("other", .integer(0))
            try await store.remove("key")
            let entries = try await history("key", store)
            #expect(entries.map { $0["value"] } == (4..<20).reversed().map { .integer(Int64($0)) })
            #expect(
                entries.map { $0["why"] } == [.string("removed")] + Array(repeating: .string("replaced"), count: 15)
            )
            #expect(entries.allSatisfy { $0["when"] != nil })
            #expect(await errorName { _ = try await history("", store) } == "NoSuchKey")
            #expect(await errorName { _ = try await history("key", store, flags: 1) } == "InvalidArgs")
        }
    }

    private func history(_ key: String, _ store: StoreClient, flags: UInt64 = 0) async throws -> [[String: Value]] {
        try await store.call("GetHistory") {
            try $0.append(key)
            try $0.append(flags)
        } decode: { answer in
            var entries: [[String: Value]] = []
            _ = try answer.enterContainer("a", "a{sv}")
            while try !answer.isAtEnd(whole: false) {
                entries.append(Dictionary(uniqueKeysWithValues: try answer.readValues().map { ($0.key, $0.value) }))
            }
            return entries
        }
    }

    // MARK: The account

    @Test func `an account that isn't there says so in its properties`() async throws {
        try await withMachine { machine in
            let account = try machine.client().account
            var properties = try await account.client.properties(account.path, BusNames.accountInterface)
            #expect(properties.removeValue(forKey: "DeviceIdentifier") != nil)
            guard case .integer(1...) = properties.removeValue(forKey: "FreeBytes") else {
                throw BusError.failed("no free bytes")
            }
            #expect(
                properties == [
                    "DefaultBackend": .string(""), "DatabasesSetAside": .array([]),
                    "State": .string("signed-out"), "Backend": .string(""), "AccountIdentifier": .string(""),
                    "DeviceName": .string("device"), "InitialSyncDone": .boolean(false), "ExcludedChanges": .integer(0),
                    "PendingChanges": .integer(0),
                    "LastPullUSec": .integer(0), "LastPushUSec": .integer(0), "LastErrorName": .string(""),
                    "LastErrorMessage": .string(""), "LastErrorReason": .string(""), "NextAttemptUSec": .integer(0),
                    "NextSyncUSec": .integer(0), "SlowedBy": .array([]), "Encrypted": .boolean(false),
                    "PhraseUnconfirmed": .boolean(false), "ShowsFormerAccount": .boolean(false),
                ]
            )
            #expect(await errorName { try await account.signOut() } == "NotSignedIn")
            #expect(await errorName { try await account.syncNow() } == "NotSignedIn")
            try await account.subscribe()
            try await account.call("Unsubscribe") { _ in
            } decode: { _ in
            }
        }
    }

    @Test func `ListDevices lists this device`() async throws {
        try await withMachine { machine in
            let account = try machine.client().account
            let devices = try await account.devices()
            #expect(devices.count == 1)
            #expect(devices.first?["this"] == .boolean(true) && devices.first?["name"] == .string("device"))
            #expect(devices.first?["identifier"] == (try await account.property("DeviceIdentifier")))
            #expect(devices.first?["last-seen-usec"] == .integer(0))
        }
    }

    @Test func `a backend that isn't there and options that aren't right are refused, and nothing has changed`()
        async throws
    {
        try await withMachine { machine in
            let account = try machine.client().account
            for url in ["gopher://host/", "x:", "", "folder", "/tmp"] {
                let name = await errorName { try await account.signIn(url) }
                #expect(["BackendUnsupported", "InvalidArgs"].contains(name), "\(url): \(name)")
            }
            for (name, value) in [
                ("unknown", Value.boolean(true)), ("password", .integer(1)), ("create", .string("yes")),
                ("ca-pem", .string("x")), ("device-name", .string("")),
                ("device-name", .string(Text(String(repeating: "a", count: 256)))),
            ] {
                #expect(
                    await errorName { try await account.signIn("folder:///nowhere", [name: value]) } == "InvalidArgs"
                )
            }
            #expect(try await account.state() == "signed-out")
        }
    }

    @Test func `what steers an account that isn't there says so`() async throws {
        try await withMachine { machine in
            let account = try machine.client().account
            let device = try await account.text("DeviceIdentifier")
            #expect(await errorName { try await account.resolve("local") } == "NotSignedIn")
            #expect(await errorName { try await account.resolve("mine") } == "InvalidArgs")
            #expect(await errorName { try await account.setPaused(true) } == "NotSignedIn")
            #expect(await errorName { try await account.rename(device: device, to: "name") } == "NotSignedIn")
            #expect(await errorName { try await account.rename(device: device, to: "") } == "InvalidArgs")
            #expect(await errorName { try await account.forget(device: "another") } == "NotSignedIn")
            for identifier in ["org.example.Undeclared", "", "a/b", "@devices"] {
                #expect(await errorName { try await account.setSynchronized(identifier, false) } == "NoSuchStore")
            }
            try await account.setSynchronized(notes, false)
            try await account.setSynchronized(notes, true)
        }
    }

    // MARK: busctl

    @Test func `a stranger drives a store with busctl, as the README says`() async throws {
        try await withMachine { machine in
            let store = "/org/example/UbiquitousStore/v1/self/org_2eexample_2eNotes"
            let interface = BusNames.storeInterface
            func call(_ rest: String...) async throws -> String {
                let result = try await run(
                    ["busctl", "--address=\(machine.bus.address)", "call", BusNames.service, store, interface] + rest,
                    as: Users.client
                )
                return result.exit == .code(0) ? result.output : result.error
            }
            let opened = try await machine.busctl(
                BusNames.managerPath,
                BusNames.managerInterface,
                "OpenStore",
                "sa{sv}",
                notes,
                "0"
            )
            #expect(opened.output.hasPrefix("oa{sv} \"/org/example/UbiquitousStore/v1/u"))
            #expect(try await call("SetValue", "sv", "theme", "s", "dark").hasPrefix("t "))
            #expect(try await call("GetValue", "s", "theme") == "v s \"dark\"")
            #expect(try await call("SetValue", "sv", "sizes", "ai", "2", "9", "12").hasPrefix("t "))
            #expect(try await call("GetValues", "as", "3", "sizes", "theme", "no").hasPrefix("a{sv} 2 "))
            #expect(try await call("SetValue", "sv", "when", "(d)", "12.5").hasPrefix("t "))
            #expect(try await call("GetValue", "s", "when") == "v (d) 12.5")
            #expect(try await call("Apply", "a{sv}asa{sv}", "1", "n", "x", "3", "1", "theme", "0").hasPrefix("t "))
            #expect(try await call("GetSnapshot", "tt", "0", "0").contains(" true 3 "))
            #expect(try await call("Subscribe", "t", "0").hasPrefix("t "))
            #expect(try await call("Unsubscribe") == "")
            #expect(try await call("Synchronize", "t", "0") == "b false")
            #expect(try await call("GetValue", "s", "theme") == "Call failed: There is no key \"theme\".")
            let tree = try await machine.bus.busctl("tree", BusNames.service, as: Users.client)
            #expect(tree.output.contains(store.replacing("self", with: "u\(Users.client ?? geteuid())")))
        }
    }
}
