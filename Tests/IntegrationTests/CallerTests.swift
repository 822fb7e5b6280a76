// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// What each caller may do.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct CallerTests {
    /// A method, and valid arguments for it.
    private typealias Call = (member: String, build: @BusActor (Message) throws -> Void)

    private static func flags(_ message: Message) throws { try message.append(0 as UInt64) }
    private static func options(_ message: Message) throws { try message.appendDictionary {} }

    private static let storeCalls: [Call] = [
        ("GetValue", { try $0.append("key") }), ("GetValues", { try $0.append(strings: ["key"]) }),
        (
            "GetSnapshot",
            {
                try $0.append(0 as UInt64); try flags($0)
            }
        ),
        (
            "SetValue",
            {
                try $0.append("key"); try $0.append(variant: .integer(2))
            }
        ),
        ("RemoveValue", { try $0.append("key") }),
        (
            "Apply",
            {
                try options($0); try $0.append(strings: ["key"]); try options($0)
            }
        ), ("Synchronize", { try flags($0) }),
        (
            "GetHistory",
            {
                try $0.append("key"); try flags($0)
            }
        ), ("Subscribe", { try flags($0) }), ("Unsubscribe", { _ in }),
        ("NoSuchMethod", { _ in }),
    ]
    private static let accountCalls: [Call] = [
        (
            "SignIn",
            {
                try $0.append("folder:///tmp/x"); try options($0)
            }
        ), ("SignOut", { try options($0) }),
        ("SyncNow", { try flags($0) }), ("Resolve", { try $0.append("local") }), ("SetPaused", { try $0.append(true) }),
        (
            "SetStoreSynchronized",
            {
                try $0.append(notes); try $0.append(true)
            }
        ), ("ListDevices", { _ in }),
        (
            "RenameDevice",
            {
                try $0.append("a"); try $0.append("b")
            }
        ), ("ForgetDevice", { try $0.append("a") }),
        (
            "CheckBackend",
            {
                try $0.append("folder:///tmp/x"); try options($0)
            }
        ), ("Subscribe", { try flags($0) }),
        ("Unsubscribe", { _ in }), ("NoSuchMethod", { _ in }),
    ]
    private static let storeProperties = [
        "Identifier", "User", "Generation", "KeyCount", "BytesUsed", "Limits", "PendingChanges", "InitialSyncDone",
        "None",
    ]
    private static let accountProperties = [
        "State", "Backend", "AccountIdentifier", "DeviceIdentifier", "DeviceName", "InitialSyncDone", "PendingChanges",
        "LastPullUSec", "LastPushUSec", "LastErrorName", "LastErrorMessage", "NextAttemptUSec", "None",
    ]

    /// Returns an object's answers to every call and property, without the object's path.
    private func answers(of path: String, to client: BusClient) async -> Set<String> {
        var errors: [BusError?] = []
        for (interface, calls, properties) in [
            (BusNames.storeInterface, Self.storeCalls, Self.storeProperties),
            (BusNames.accountInterface, Self.accountCalls, Self.accountProperties),
        ] {
            for call in calls {
                errors.append(await failure { try await client.call(path, interface, call.member, call.build) })
            }
            for property in properties {
                errors.append(await failure { _ = try await client.property(path, interface, property) })
            }
            errors.append(await failure { _ = try await client.properties(path, interface) })
        }
        errors.append(await failure { _ = try await client.introspect(path) })
        errors.append(
            await failure {
                try await client.call(path, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")
            }
        )
        return Set(
            errors.map { $0.map { "\($0.name) \($0.message)" } ?? "an answer" }.map { $0.replacing(path, with: "PATH") }
        )
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `nothing of another user exists, whatever is asked and whether it is there or not`() async throws {
        try await withMachine { machine in
            let owner = try machine.store(as: Users.nobody)
            try await owner.set("key", .string(Text(secret)))
            let stranger = try machine.client(as: Users.daemon)
            let there = await answers(of: owner.path, to: stranger)
            #expect(there.allSatisfy { $0.contains(".UnknownObject ") }, "\(there)")
            for path in [
                owner.client.account.path, BusNames.accountPath(uid: 4242),
                try BusNames.storePath(uid: 4242, identifier: notes),
                try BusNames.storePath(uid: Users.nobody, identifier: "org.example.Undeclared"),
            ] {
                #expect(await answers(of: path, to: stranger) == there, "\(path)")
            }
            #expect(try await owner.everything() == ["key": .string(Text(secret))])
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: machine.device.stateDirectory).contains("u4242")
                    == false
            )
        }
    }

    @Test func `a path that is none, or of an identifier without a manifest, does not exist`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            let account = client.account.path
            for path in [
                account + "/org_2eexample_2eUndeclared", account + "/_", account + "/_61",
                account + "/org_2Eexample_2ENotes",
                account + "/org_2eexample_2eNotes/x", account + "/a", BusNames.usersPath + "/u0\(client.uid)",
                BusNames.usersPath + "/U\(client.uid)", BusNames.usersPath + "/u4294967296/a",
                BusNames.usersPath + "/self/_2f", account + "/" + String(repeating: "a", count: 5000),
            ] {
                let all = await answers(of: path, to: client)
                #expect(all.allSatisfy { $0.contains(".UnknownObject ") }, "\(path): \(all)")
            }
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `root may use every user's stores, of identifiers that are declared or hold data`() async throws {
        try await withMachine { machine in
            let owner = try machine.store(as: Users.nobody)
            try await owner.set("key", .integer(1))
            let root = try machine.client(as: nil)
            let same = StoreClient(root, path: owner.path)
            #expect(try await same.value("key") == .integer(1))
            try await same.set("key", .integer(2))
            #expect(try await owner.value("key") == .integer(2))
            #expect(try await same.property("User") == .integer(Int64(Users.nobody)))
            #expect(try await AccountClient(root, path: owner.client.account.path).state() == "signed-out")
            let undeclared = try BusNames.storePath(uid: Users.nobody, identifier: "org.example.Undeclared")
            #expect(
                await errorName { _ = try await StoreClient(root, path: undeclared).everything() } == "UnknownObject"
            )
            // After the store's manifest is removed, only root reaches its data.
            unlink(machine.device.manifestDirectory + "/app0.plist")
            try await root.manager("Reload")
            #expect(await errorName { _ = try await owner.everything() } == "UnknownObject")
            #expect(try await same.value("key") == .integer(2))
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `users have stores of one identifier each of their own`() async throws {
        try await withMachine { machine in
            let stores = [
                try machine.store(as: Users.nobody), try machine.store(as: Users.daemon), try machine.store(as: nil),
            ]
            for (index, store) in stores.enumerated() {
                try await store.subscribe(0x1)
                try await store.set("key", .integer(Int64(index)))
            }
            for (index, store) in stores.enumerated() {
                #expect(try await store.value("key") == .integer(Int64(index)))
                #expect(store.received.isEmpty)
            }
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `Reload is for root and the service's user`() async throws {
        try await withMachine { machine in
            #expect(await errorName { try await machine.client(as: Users.nobody).manager("Reload") } == "AccessDenied")
            try await machine.client(as: nil).manager("Reload")
            try await machine.client(as: Users.service).manager("Reload")
        }
    }

    // MARK: Sandboxes

    /// Runs `busctl call` in a root directory of its own, as sandboxes do.
    private func sandboxed(_ machine: Machine, as user: UInt32, _ arguments: [String]) async throws -> ProgramResult {
        let root = try machine.device.directory.makeDirectory("root-\(UUID().uuidString)")
        let socket = String(machine.bus.address.dropFirst("unix:path=".count))
        let script = """
            set -e
            mount -t tmpfs none "$1"
            for place in /usr /lib /lib64 /bin /proc "$(dirname "$2")"; do
                [ -e "$place" ] || continue
                mkdir -p "$1$place"
                mount --rbind "$place" "$1$place"
            done
            root=$1 user=$3
            shift 3
            exec chroot "$root" setpriv --reuid="$user" --regid="$user" --clear-groups "$@"
            """
        return try await run(
            [
                "unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", root, socket, "\(user)",
                "busctl",
                "--address=\(machine.bus.address)", "call", BusNames.service,
            ] + arguments
        )
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a caller in a root of its own is refused`() async throws {
        try await withMachine { machine in
            let owner = try machine.store(as: Users.nobody)
            try await owner.set("key", .string(Text(secret)))
            func call(_ arguments: String...) async throws -> ProgramResult {
                try await sandboxed(machine, as: Users.nobody, arguments)
            }
            let manager = (BusNames.managerPath, BusNames.managerInterface)
            let identity = try await call(manager.0, manager.1, "Identify")
            #expect(identity.output.contains("\"engine\" s \"unknown\""), "\(identity)")
            #expect(identity.output.contains("\"entitled\" as 0"), "\(identity)")
            #expect(!identity.output.contains("folder-roots"), "\(identity)")
            let opened = try await call(manager.0, manager.1, "OpenStore", "sa{sv}", notes, "0")
            #expect(opened.exit != .code(0) && opened.error.contains("sandbox"), "\(opened)")
            let read = try await call(owner.path, BusNames.storeInterface, "GetValue", "s", "key")
            #expect(read.exit != .code(0) && !read.output.contains(secret), "\(read)")
            #expect(read.error.contains("Unknown object") || read.error.contains("No such object"), "\(read)")
            for arguments in [
                ["ListStores", "t", "0"], ["RemoveStore", "st", notes, "0"], ["RegisterManifest", "aya{sv}", "0", "0"],
            ] {
                let result = try await sandboxed(machine, as: Users.nobody, [manager.0, manager.1] + arguments)
                #expect(result.exit != .code(0), "\(result)")
            }
            let account = try await call(owner.client.account.path, BusNames.accountInterface, "SyncNow", "t", "0")
            #expect(account.exit != .code(0) && account.error.contains("nknown object"), "\(account)")
            #expect(try await owner.everything() == ["key": .string(Text(secret))])
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a caller with mounts of its own and the host's root is the host's`() async throws {
        try await withMachine { machine in
            let script = "mount -t tmpfs none /mnt && exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\""
            let result = try await run([
                "unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", "busctl",
                "--address=\(machine.bus.address)", "call", BusNames.service, BusNames.managerPath,
                BusNames.managerInterface, "Identify",
            ])
            #expect(result.output.contains("\"engine\" s \"host\""), "\(result)")
        }
    }

    /// A program that connects as a user, hands the connection to a child and exits. The child then asks who is
    /// calling; with "replaced", once a process in another root has the parent's pid.
    private static let heir = """
        import os, socket, sys, time
        path, uid, what, root = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
        bus = socket.socket(socket.AF_UNIX)
        os.seteuid(uid)
        bus.connect(path)
        os.seteuid(0)
        bus.sendall(b"\\0AUTH EXTERNAL " + str(uid).encode().hex().encode() + b"\\r\\n")
        bus.recv(4096)
        bus.sendall(b"BEGIN\\r\\n")
        def call(serial, destination, path, interface, member):
            fields = b""
            for code, kind, value in ((1, b"o", path), (2, b"s", interface), (3, b"s", member), (6, b"s", destination)):
                fields += b"\\0" * (-len(fields) % 8) + bytes([code, 1]) + kind + b"\\0"
                fields += len(value).to_bytes(4, "little") + value.encode() + b"\\0"
            head = b"l\\1\\0\\1" + bytes(4) + serial.to_bytes(4, "little") + len(fields).to_bytes(4, "little")
            bus.sendall(head + fields + b"\\0" * (-len(fields) % 8))
        call(1, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello")
        bus.recv(4096)
        pid = os.getpid()
        if os.fork(): os._exit(0)
        while os.path.exists(f"/proc/{pid}"): time.sleep(0.01)
        if what == "replaced":
            there, told = os.pipe()
            for _ in range(2000):
                with open("/proc/sys/kernel/ns_last_pid", "w") as last: last.write(str(pid - 1))
                child = os.fork()
                if child == 0:
                    if os.getpid() != pid: os._exit(0)
                    os.chroot(root)
                    os.write(told, b"x")
                    time.sleep(600)
                if child == pid: break
                os.waitpid(child, 0)
            else: sys.exit("the pid was not to be had")
            os.read(there, 1)
        name = "org.example.UbiquitousStore"
        call(2, name, "/org/example/UbiquitousStore", name + ".Manager", "Identify")
        answer = b""
        bus.settimeout(30)
        while b"engine" not in answer: answer += bus.recv(65536)
        print([word for word in ("host", "flatpak", "unknown") if word.encode() in answer])
        sys.stdout.flush()
        if what == "replaced": os.kill(pid, 9)
        """

    @Test(
        .enabled(if: Users.areSeveral, Users.needsRoot), .enabled(if: access("/usr/bin/python3", X_OK) == 0),
        arguments: ["gone", "replaced"])
    func `a caller whose process has ended, or whose pid is one's in another root, is not known`(what: String)
        async throws
    {
        try await withMachine { machine in
            let root = try machine.device.directory.makeDirectory("root")
            // `cat` ends when the last writer of the pipe does, not when the process that has connected does.
            let script = """
                mount -t tmpfs none "$1" && /usr/bin/python3 -c "$2" "$3" 65534 "$4" "$1" | cat
                """
            let result = try await run([
                "unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", root, Self.heir,
                String(machine.bus.address.dropFirst("unix:path=".count)), what,
            ])
            #expect(result.output == "['unknown']", "\(result)")
        }
    }

    // MARK: Registered manifests

    private func register(_ text: String, _ client: BusClient, option: String? = nil) async throws -> [String] {
        try await client.manager("RegisterManifest") { message in
            try message.append(bytes: Array(text.utf8))
            try message.appendDictionary { if let option { try message.append(entry: option, .boolean(true)) } }
        } decode: {
            try $0.readStrings()
        }
    }

    private func refusal(_ text: String, _ client: BusClient, option: String? = nil) async -> String {
        await errorName { _ = try await register(text, client, option: option) }
    }

    @Test func `a user registers a manifest for its own stores`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            let own = try client.store("TEAM.org.example.Own")
            #expect(await errorName { _ = try await own.everything() } == "UnknownObject")
            let manifest = ManifestText(
                "$(TeamIdentifierPrefix)org.example.Own",
                application: "org.example.Own",
                team: "TEAM"
            ).xml
            #expect(try await register(manifest, client) == ["TEAM.org.example.Own"])
            try await own.set("key", .integer(1))
            try await machine.device.restart()
            #expect(try await own.value("key") == .integer(1))
            // A later manifest of the same app replaces it.
            #expect(try await register(ManifestText("other", application: "org.example.Own").xml, client) == ["other"])
            #expect(
                await errorName { _ = try await client.store("TEAM.org.example.Own").everything() } == "UnknownObject"
            )
            #expect(
                await errorName { _ = try await machine.store("TEAM.org.example.Own").everything() } == "UnknownObject"
            )
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a registered manifest counts for its user alone`() async throws {
        try await withMachine { machine in
            _ = try await register(ManifestText("own").xml, try machine.client(as: Users.nobody))
            #expect(
                await errorName { _ = try await machine.store("own", as: Users.daemon).everything() } == "UnknownObject"
            )
            try await machine.store("own", as: Users.nobody).set("key", .integer(1))
        }
    }

    @Test func `a manifest that isn't right, or claims what the system's declare, is refused`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            for text in [
                "", "x", ManifestText("a", application: nil).xml,
                ManifestText("a/b", application: "a").xml, ManifestText("a", application: "../a").xml,
            ] {
                let name = await refusal(text, client)
                #expect(name == "InvalidArgs", "\(text)")
            }
            do {
                _ = try await register(ManifestText("a/b", application: "a").xml, client)
            } catch let error as BusError {
                #expect(error.message.contains("com.apple.developer.ubiquity-kvstore-identifier: \"a/b\" has to be"))
            }
            // This manifest declares no store.
            #expect(try await register(ManifestText(nil, application: "a").xml, client) == [])
            #expect(await refusal(ManifestText(notes).xml, client) == "NotEntitled")
            #expect(await refusal(ManifestText("a").xml, client, option: "x") == "InvalidArgs")
            let large = await refusal(String(repeating: " ", count: 1 << 20), client)
            #expect(["InvalidArgs", "LimitsExceeded"].contains(large))
        }
    }

    @Test func `the 65th manifest of a user is refused, one in the place of another is not`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            for number in 0..<64 { _ = try await register(ManifestText("app\(number)").xml, client) }
            #expect(await refusal(ManifestText("app64").xml, client) == "LimitsExceeded")
            _ = try await register(ManifestText("another", application: "app0").xml, client)
        }
    }

    @Test func `large manifests of a user are refused once they take too much together`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            func manifest(_ number: Int, keys: Int = 250) -> String {
                let keys = (0..<keys).map { "\($0)" + String(repeating: "k", count: 220) }
                return ManifestText("app\(number)", localKeys: keys).xml
            }
            for number in 0..<4 { _ = try await register(manifest(number), client) }
            #expect(await refusal(manifest(4), client) == "LimitsExceeded")
            _ = try await register(manifest(4, keys: 10), client)
            _ = try await register(manifest(3, keys: 10), client)
            _ = try await register(manifest(4), client)
        }
    }

    @Test func `what a system manifest declares later is the system's`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            let manifest = ManifestText("later", application: "app", localKeys: ["local"])
            _ = try await register(manifest.xml, client)
            try await client.store("later").set("key", .integer(1))
            try machine.device.install(ManifestText("later").xml, as: "later.plist")
            try await eventually("it is read") {
                await refusal(manifest.xml, client) == "NotEntitled"
            }
            #expect(try await client.store("later").value("key") == .integer(1))
        }
    }
}
