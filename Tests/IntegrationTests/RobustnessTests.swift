// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PressureTesting
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// Misbehaving clients, of which others must notice nothing.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct RobustnessTests {
    @Test func `clients that vanish in the middle of a call harm nobody`() async throws {
        try await withMachine({ $0.user = nil }) { machine in
            let store = try machine.store(as: nil)
            try await store.set("large", .data([UInt8](repeating: 1, count: 500_000)))
            for round in 0..<20 {
                let raw = try RawClient(machine.bus)
                raw.set(store.path, "vanished \(round)", UInt32(round))
                raw.get(store.path, "large")
                raw.store(store.path, "Subscribe", 0)
                raw.store(store.path, "Synchronize", 0)
                raw.end()
                try await store.set("other", .integer(Int64(round)))
            }
            #expect(try await store.value("other") == .integer(19))
            #expect(machine.device.exit == nil)
        }
    }

    @Test func `programs introspect while their user's calls rest, also behind calls that wait`() async throws {
        try await withMachine({ $0.user = nil }) { machine in
            let store = try machine.store(as: nil)
            let value: Value = .array(Array(repeating: .array([]), count: 30_000))
            for _ in 0..<5 {
                // So much that the user's next calls wait.
                _ = try await store.set("long", value)
                async let behind = store.value("long")
                #expect(try await store.client.introspect(store.path).contains("<node"))
                #expect(try await machine.store(as: nil).client.introspect("/").contains("<node"))
                #expect(try await behind == value)
            }
        }
    }

    @Test func `300 calls in flight are answered or refused by the bus, and others are served`() async throws {
        try await withMachine { machine in
            let (busy, other) = (try machine.store(), try machine.store())
            async let results = atOnce(300) { index in
                await errorName { try await busy.set("key \(index)", .integer(Int64(index))) }
            }
            try await other.set("other", .integer(1))
            let names = try await results
            #expect(Set(names).isSubset(of: ["", "LimitsExceeded"]), "\(Set(names))")
            let values = try await other.everything()
            for (index, name) in names.enumerated() where name.isEmpty { #expect(values[Text("key \(index)")] != nil) }
            #expect(machine.device.exit == nil)
            try await busy.set("after", .integer(1))
        }
    }

    /// dbus-daemon lets a connection wait for 128 replies.
    @Test(arguments: [(20, 120), (1, PrivateBus.Program.usual == .broker ? 3000 : 120)])
    func `however many calls a user has under way, each is answered, and in its order`(
        connections: Int, calls: Int
    ) async throws {
        try await withMachine { machine in
            let (other, path) = (try machine.store(as: nil), try machine.store().path)
            nonisolated(unsafe) let clients = try (0..<connections).map { _ in
                try RawClient(machine.bus, as: Users.client)
            }
            for client in clients {
                for number in 0..<calls { client.set(path, "key", UInt32(number), later: true) }
            }
            let end = ContinuousClock.now + .seconds(300)
            let replies = Task.detached {
                try clients.map { client in
                    var replies: [WireReply] = []
                    while replies.count < calls {
                        try #require(ContinuousClock.now < end, "\(replies.count) of \(calls) calls were answered")
                        replies += try #require(client.turn(waiting: 100)).filter { $0.replySerial > 1 }
                    }
                    return replies
                }
            }
            // Users take turns only beside each other.
            for number in 0..<100 { try await other.set("other", .integer(Int64(number))) }
            for replies in try await replies.value {
                let answered = replies.filter { $0.errorName == nil }.map(\.replySerial)
                #expect(answered == answered.sorted())
                // While a user rests, 256 calls of a connection wait.
                #expect(answered.count == calls || calls > 256)
            }
        }
    }

    /// All of them arrive before the bus has said who sends them.
    @Test func `what a connection sends at once is answered, also if the service is busy when it comes`() async throws {
        let calls = PrivateBus.Program.usual == .broker ? 3000 : 120
        try await withMachine { machine in
            let path = try machine.store().path
            nonisolated(unsafe) let client = try RawClient(machine.bus, as: Users.client)
            machine.device.signal(SIGSTOP)
            for number in 0..<calls { client.set(path, "key", UInt32(number), later: true) }
            try await elsewhere {
                while client.unsentCount > 0 { try #require(client.turn(waiting: 100) != nil) }
                // The bus reads what was sent.
                for _ in 0..<20 { try #require(client.turn(waiting: 10) != nil) }
            }
            machine.device.signal(SIGCONT)
            let replies = try await elsewhere {
                var replies: [WireReply] = []
                let end = ContinuousClock.now + .seconds(120)
                while replies.count < calls, ContinuousClock.now < end {
                    replies += try #require(client.turn(waiting: 100)).filter { $0.replySerial > 1 }
                }
                return replies
            }
            #expect(replies.count == calls)
            #expect(replies.allSatisfy { $0.errorName == nil })
            #expect(machine.device.exit == nil)
        }
    }

    @Test func `calls that expect no reply are carried out, and dropped where they are too many`() async throws {
        try await withMachine { machine in
            let (other, path) = (try machine.store(), try machine.store().path)
            nonisolated(unsafe) let raw = try RawClient(machine.bus, as: Users.client)
            for number in 0..<1000 { raw.setUnanswered(other.path, "key \(number)", bytes: 1) }
            try await eventually("all are set") { try await other.everything().count == 1000 }
            #expect(!machine.device.log.contains("expect no reply"))
            // 120 MB. The bus holds up to 127 MiB for the service, and refuses all senders beyond that.
            try await elsewhere { for _ in 0..<2000 { raw.setUnanswered(path, "large", bytes: 60_000) } }
            try await other.set("other", .integer(1))
            #expect(try await other.value("other") == .integer(1))
            try await eventually("the journal has a line") { machine.device.log.contains("expect no reply") }
        }
    }

    @Test(arguments: [1, 1 << 20])
    func `others are served while calls that expect no reply come without a pause`(bytes: Int) async throws {
        try await withMachine({ $0.mode = "system" }) { machine in
            let (store, path) = (try machine.store(as: Users.daemon), try machine.store().path)
            let floods = try (0..<2).map { _ in try RawClient(machine.bus, as: Users.client) }
            for flood in floods {
                // Only that thread uses the client, until it hangs up.
                nonisolated(unsafe) let flood = flood
                Thread.detachNewThread { flood.floodUnanswered(path, "key", bytes: bytes) }
            }
            defer { for flood in floods { flood.hangUp() } }
            try await eventually("the flood is there") { machine.device.log.contains("expect no reply") }
            for number in 0..<40 {
                try await eventually("call \(number) is answered") {
                    let name = await errorName { try await store.set("key", .integer(Int64(number))) }
                    // The bus refuses the call if a busy machine has left the service no time to read.
                    #expect(["", "LimitsExceeded"].contains(name))
                    return name.isEmpty
                }
            }
            #expect(try await store.value("key") == .integer(39))
            #expect(machine.device.exit == nil)
        }
    }

    @Test(
        .enabled(if: PrivateBus.Program.usual == .broker, "dbus-daemon has no allowances"),
        .enabled(if: Users.areSeveral, Users.needsRoot))
    func `others can't have the bus keep much for a service that doesn't read`() async throws {
        try await withMachine({ $0.mode = "system" }) { machine in
            let (root, uid) = (try machine.client(as: 0).connection, try #require(Users.service))
            let allowance = 32 << 20
            #expect(try #require(try await root.allowance(of: uid)) <= allowance)
            let (store, path) = (try machine.store(as: Users.daemon), try machine.store().path)
            try await store.set("key", .integer(0))
            machine.device.signal(SIGSTOP)
            nonisolated(unsafe) let raw = try RawClient(machine.bus, as: Users.client)
            try await elsewhere {
                for _ in 0..<1000 { raw.setUnanswered(path, "key", bytes: 60_000) }
                // The answer comes after all of the calls.
                raw.addMatch("type='signal',sender='\(BusNames.service)'")
                _ = raw.receive()
            }
            let left = try #require(try await root.allowance(of: uid))
            #expect(left < allowance && left > allowance / 2, "\(left)")
            machine.device.signal(SIGCONT)
            try await store.set("key", .integer(1))
            #expect(try await store.value("key") == .integer(1))
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a directory service that doesn't say who a user is holds nobody up`() async throws {
        let temporary = try TemporaryDirectory()
        let directory = try temporary.makeDirectory("users", owner: Users.service)
        let preloaded = URL(filePath: try Device.program()).deletingLastPathComponent()
        try await withMachine({
            $0.environment = [
                "SLOW_USERS": directory + "/lookup",
                "LD_PRELOAD": preloaded.appending(path: "libSlowNames.so").path,
            ]
        }) { machine in
            let (store, root) = (try machine.store(), try machine.client(as: 0).connection)
            let unknown = try BusNames.storePath(uid: 4_000_000, identifier: notes)
            let answer = Task {
                await errorName {
                    try await root.invoke(BusNames.service, unknown, BusNames.storeInterface, "GetValue") {
                        try $0.append("key")
                    }
                }
            }
            try await eventually("the user is looked up") {
                FileManager.default.fileExists(atPath: directory + "/lookup")
            }
            try await store.set("key", .integer(1))
            #expect(try await store.value("key") == .integer(1))
            #expect(await answer.value == "UnknownObject")
            #expect(FileManager.default.fileExists(atPath: directory + "/lookup"))
        }
        withExtendedLifetime(temporary) {}
    }

    @Test(
        .enabled(if: Users.areSeveral, Users.needsRoot),
        .enabled(if: PrivateBus.Program.usual == .broker, "dbus-daemon asks for the name itself"))
    func `a uid that is somebody else's now finds nothing, though the directory service failed at the start`()
        async throws
    {
        let temporary = try TemporaryDirectory()
        let users = try temporary.makeDirectory("directory", owner: Users.service) + "/passwd"
        func name(_ name: String?) throws {
            let line = name.map { "\($0):x:4000001:4000001::/:/bin/false\n" } ?? ""
            try line.write(toFile: users, atomically: false, encoding: .utf8)
        }
        try name(nil)
        let preloaded = URL(filePath: try Device.program()).deletingLastPathComponent()
        try await withMachine({
            $0.environment = [
                "DIRECTORY_USERS": users, "LD_PRELOAD": preloaded.appending(path: "libSlowNames.so").path,
            ]
        }) { machine in
            try await machine.store(as: 4_000_001).set("key", .string(Text(secret)))
            // The name is recorded once it is known.
            try name("alice")
            _ = try await machine.store(as: 4_000_001).everything()
            let record = machine.device.stateDirectory + "/u4000001/user"
            #expect(try String(contentsOfFile: record, encoding: .utf8) == "alice")
            try await machine.device.stop()
            try name(nil)
            try await machine.device.start()
            // Something opens the data: here root does, as an account that resumes would.
            let asRoot = try machine.client(as: 0).connection
            let path = try BusNames.storePath(uid: 4_000_001, identifier: notes)
            try await asRoot.invoke(BusNames.service, path, BusNames.storeInterface, "GetValue") {
                try $0.append("key")
            }
            _ = try await machine.store().everything()
            try name("bob")
            #expect(try await machine.store(as: 4_000_001).everything().isEmpty)
            let names = try FileManager.default.contentsOfDirectory(atPath: machine.device.stateDirectory)
            #expect(names.contains { $0.hasPrefix("u4000001.alice.") }, "\(names)")
        }
        withExtendedLifetime(temporary) {}
    }

    @Test func `groups that a directory service doesn't say are asked for one at a time`() async throws {
        let temporary = try TemporaryDirectory()
        let directory = try temporary.makeDirectory("groups", owner: Users.service)
        let preloaded = URL(filePath: try Device.program()).deletingLastPathComponent()
        try await withMachine({
            $0.environment = [
                "SLOW_GROUPS": directory + "/lookup",
                "LD_PRELOAD": preloaded.appending(path: "libSlowNames.so").path,
            ]
        }) { machine in
            let domain = try machine.client().domain("org.example.Editor")
            try await domain.subscribe()
            for number in 1...20 {
                // The first file needs a group lookup, and the second one causes the signal.
                let group = "<key>Groups</key><array><string>no such group \(number)</string></array>"
                for (name, scope) in [("10.plist", group), ("20.plist", "")] {
                    let path = machine.device.managedDirectory + "/" + name
                    try """
                    <plist version="1.0"><dict><key>Forced</key><dict><key>org.example.Editor</key>
                    <dict><key>size</key><integer>\(number)</integer></dict></dict>\(scope)</dict></plist>
                    """.write(toFile: path + ".new", atomically: false, encoding: .utf8)
                    rename(path + ".new", path)
                }
                _ = try await domain.signal("managed \(number)") { $0.reason == 32 }
            }
            // The runtime adds threads to the pool that all tasks share only after a while.
            try await Task.sleep(for: .seconds(3))
            let lookups = try FileManager.default.attributesOfItem(atPath: directory + "/lookup")[.size] as? Int
            #expect(lookups == 1)
        }
        withExtendedLifetime(temporary) {}
    }

    @Test func `settings for a group of a hundred thousand members apply`() async throws {
        let preloaded = URL(filePath: try Device.program()).deletingLastPathComponent()
        let group = try #require(getgrgid(getegid()))
        let name = String(cString: group.pointee.gr_name)
        try await withMachine({
            $0.environment = [
                "LARGE_GROUPS": "\(3 << 20)", "LD_PRELOAD": preloaded.appending(path: "libSlowNames.so").path,
            ]
        }) { machine in
            try """
            <plist version="1.0"><dict><key>Groups</key><array><string>\(name)</string></array><key>Forced</key><dict>
            <key>org.example.Editor</key><dict><key>size</key><integer>9</integer></dict></dict></dict></plist>
            """.write(toFile: machine.device.managedDirectory + "/10.plist", atomically: true, encoding: .utf8)
            let domain = try machine.client().domain("org.example.Editor")
            try await eventually("the setting is forced") {
                try await domain.managed()["forced"] == .dictionary(["size": .integer(9)])
            }
        }
    }

    @Test func `a message of 33 MiB is refused, or disconnects its sender alone`() async throws {
        try await withMachine { machine in
            let (large, other) = (try machine.store(), try machine.store())
            let name = await errorName { try await large.set("key", .data([UInt8](repeating: 0, count: 33 << 20))) }
            // dbus-broker lets the message through.
            #expect(["Disconnected", "NoReply", "QuotaExceeded"].contains(name), "\(name)")
            try await other.set("key", .integer(1))
            #expect(machine.device.exit == nil)
        }
    }

    /// Swift compares and searches texts by characters, and one character may have any number of marks. That takes a time
    /// that grows with the square of their number: a minute for these, on the thread that answers everybody.
    @Test func `texts that are one long character are refused before anything looks at them`() async throws {
        try await withMachine { machine in
            let client = try BusClient(machine.bus)
            let text = "a" + String(repeating: "\u{301}\u{327}", count: 50_000)
            let account = client.account
            for url in [text, "webdav://\(text)/x", "etcd://\(text)/x", "etcd://h/\(text)", "folder:///\(text)"] {
                let name = await errorNameOnceServed { _ = try await account.signIn(url) }
                #expect(name == "InvalidArgs")
            }
            // Swift takes a time that grows with the square of their length to find words among these.
            let flags = String(repeating: "\u{1F1E6}", count: 16_000)
            let authority: KeyValuePairs<String, Value> = ["ca-pem": .data(Array(flags.utf8))]
            for _ in 0..<100 {
                let name = await errorNameOnceServed {
                    _ = try await account.signIn("webdavs://127.0.0.1:9/x", authority)
                }
                #expect(["BackendUnsupported", "BackendUnavailable"].contains(name), "\(name)")
            }
            let manifest = Array("<?xml version=\"1.0\" \(flags)?><plist/>".utf8)
            let refusal = await errorNameOnceServed {
                try await client.manager("RegisterManifest") {
                    try $0.append(bytes: manifest)
                    try $0.appendDictionary {}
                }
            }
            #expect(refusal == "InvalidArgs")
            let many = "etcd://" + (0..<60_000).map { "m\($0)" }.joined(separator: ",") + "/x"
            #expect(await errorNameOnceServed { _ = try await account.signIn(many) } == "InvalidArgs")
            let options: KeyValuePairs<String, Value> = ["password": .string(Text(text))]
            let secret = await errorNameOnceServed { _ = try await account.signIn("webdav://h/x", options) }
            #expect(secret == "InvalidArgs")
            let name = String(text.unicodeScalars.prefix(20_000))
            #expect(await errorNameOnceServed { try await openStore(name, client) } == "InvalidArgs")
            #expect(await errorNameOnceServed { try await account.resolve(name) } == "InvalidArgs")
            #expect(machine.device.exit == nil)
        }
    }

    /// Returns the name of a call's error. Calls again while the service refuses large calls after others took long.
    private func errorNameOnceServed(_ body: @BusActor () async throws -> Void) async -> String {
        let end = ContinuousClock.now + .seconds(180)
        while true {
            let name = await errorName(body)
            if name != "LimitsExceeded" || ContinuousClock.now > end { return name }
        }
    }

    private func openStore(_ identifier: String, _ client: BusClient) async throws {
        try await client.call(BusNames.managerPath, BusNames.managerInterface, "OpenStore") {
            try $0.append(identifier)
            try $0.appendDictionary {}
        }
    }

    @Test func `31 MiB reach the service and are refused there`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            let value = Value.data([UInt8](repeating: 0, count: 31 << 20))
            #expect(await errorName { try await store.set("key", value) } == "QuotaExceeded")
            let many = Value.array(Array(repeating: .boolean(true), count: 2_000_000))
            #expect(await errorName { try await store.set("key", many) } == "QuotaExceeded")
            try await store.set("key", .integer(1))
        }
    }

    @Test func `a client that asks for much and reads nothing does not hold the others up`() async throws {
        try await withMachine({ $0.user = nil }) { machine in
            let (store, other) = (try machine.store(as: nil), try machine.store(as: nil))
            try await store.set("large", .data([UInt8](repeating: 1, count: 1_000_000)))
            let deaf = try (0..<2).map { _ in try RawClient(machine.bus) }
            for client in deaf { client.askForMuch(store.path) }
            for number in 0..<20 { try await other.set("key", .integer(Int64(number))) }
            #expect(try await other.value("key") == .integer(19))
            #expect(machine.device.exit == nil)
            withExtendedLifetime(deaf) {}
        }
    }

    @Test func `a subscriber that reads nothing does not hold the others up, and its signals are bounded`() async throws
    {
        try await withMachine({ $0.user = nil }) { machine in
            let (store, other) = (try machine.store(as: nil), try machine.store(as: nil))
            let deaf = try RawClient(machine.bus)
            deaf.store(store.path, "Subscribe", 1)
            try await other.subscribe(0x1)
            // Each refusal causes a signal at once, which names all keys.
            let keys = (0..<1000).map { (key: "\($0)" + String(repeating: "k", count: 120), value: Value.integer(1)) }
            let large = (key: "large", value: Value.data([UInt8](repeating: 1, count: 1_048_577)))
            for _ in 0..<40 { _ = await failure { try await store.apply(keys + [large]) { _ in } } }
            _ = try await other.signal("a signal") { $0.reason == 2 }
            try await store.set("key", .integer(1))
            #expect(machine.device.exit == nil)
            withExtendedLifetime(deaf) {}
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `the system bus lets the service ask a subscriber for a sign of life`() async throws {
        try await withMachine { machine in
            let reader = try machine.client(as: Users.nobody)
            let service = try machine.client(as: Users.service)
            try await service.connection.invoke(
                reader.connection.uniqueName,
                "/",
                "org.freedesktop.DBus.Peer",
                "Ping"
            )
            let stranger = try machine.client(as: Users.daemon)
            let name = await errorName {
                try await stranger.connection.invoke(
                    reader.connection.uniqueName,
                    "/",
                    "org.freedesktop.DBus.Peer",
                    "Ping"
                )
            }
            #expect(name == "AccessDenied")
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `properties of stores that are long to load don't have others wait for each of them`() async throws {
        try await withFullStores { machine, stores in
            let slow = try RawClient(machine.bus, as: Users.client)
            var interface = Wire()
            interface.string(BusNames.storeInterface)
            for path in stores {
                slow.call(
                    BusNames.service, path, "org.freedesktop.DBus.Properties", "GetAll", signature: "s",
                    body: interface.bytes)
            }
            #expect(try await workingPart(machine, until: slow, has: stores.count) < 0.6)
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `however often a user asks how much history there is, others are served meanwhile`() async throws {
        try await withFullStores { machine, _ in
            let path = BusNames.accountPath(uid: Users.nobody)
            let busy = try RawClient(machine.bus, as: Users.client)
            for _ in 0..<100 { busy.call(BusNames.service, path, BusNames.accountInterface, "GetUsage") }
            #expect(try await workingPart(machine, until: busy, has: 100) < 0.6)
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `calls that expect no reply wait while their user rests, and are carried out in their order`() async throws {
        try await withFullStores { machine, stores in
            let busy = try RawClient(machine.bus, as: Users.client)
            // A program may send a call and end.
            let leaving = try RawClient(machine.bus, as: Users.client)
            leaving.get(stores[0], "key 1")
            try leaving.hearService()
            for _ in 0..<40 { busy.historyUnanswered(stores[0], "key 1") }
            leaving.setUnanswered(stores[0], "left", bytes: 1)
            try leaving.awaitBus()
            leaving.end()
            busy.setUnanswered(stores[0], "last", bytes: 1)
            busy.get(stores[0], "last")
            #expect(try await workingPart(machine, until: busy, has: 1) < 0.6)
            let store = try machine.store("\(notes)0")
            #expect(try await store.value("last") == .data([1]))
            try await eventually("the call of who has left is carried out") {
                await errorName { _ = try await store.value("left") } == ""
            }
        }
    }

    @Test(arguments: 0..<3, [true, false])
    func `a call comes after those that expected no reply and whose sender has ended`(
        round: Int, expectsReply: Bool
    ) async throws {
        try await withMachine { machine in
            let store = try machine.store()
            let leaving = try RawClient(machine.bus, as: Users.client)
            let later = try RawClient(machine.bus, as: Users.client)
            // The first call of a connection waits until it is known whose it is.
            try await store.set("left", .integer(0))
            for client in [leaving, later] {
                client.get(store.path, "left")
                try client.hearService()
            }
            for _ in 0..<150 { leaving.setUnanswered(store.path, "left", bytes: 50_000) }
            leaving.setUnanswered(store.path, "all", bytes: 1)
            try leaving.awaitBus()
            leaving.end()
            if expectsReply {
                try await store.set("left", .integer(1))
            } else {
                try await Task.sleep(for: .milliseconds(.random(in: 0...300)))
                later.setUnanswered(store.path, "left", bytes: 1)
            }
            try await eventually("all are carried out") { await errorName { _ = try await store.value("all") } == "" }
            let last: Value = expectsReply ? .integer(1) : .data([1])
            try await eventually("the last one wins") { try await store.value("left") == last }
        }
    }

    /// Runs a test on a machine with a user whose stores have long histories and are not in memory.
    private func withFullStores(_ body: @BusActor (Machine, _ paths: [String]) async throws -> Void) async throws {
        let names = (0..<4).map { "\(notes)\($0)" }
        try await withMachine({ $0.manifests = ([notes] + names).map { ManifestText($0) } }) { machine in
            for name in names {
                let store = try machine.store(name)
                for round in 0..<16 {
                    let values = (0..<1000).map { (key: "key \($0)", value: Value.integer(Int64(round))) }
                    try await store.apply(values) { _ in }
                }
            }
            machine.device.kill()
            try await machine.device.start()
            try await body(machine, try names.map { try BusNames.storePath(uid: Users.nobody, identifier: $0) })
        }
    }

    /// Returns what part of the time until a client has its answers the service works for it.
    ///
    /// Processor time, so that whatever else keeps the machine busy only makes it less.
    private func workingPart(_ machine: Machine, until client: RawClient, has answers: Int) async throws -> Double {
        let (clock, before) = (ContinuousClock(), try processorTime(of: machine.device.pid))
        let start = clock.now
        var received = 0
        while received < answers {
            received += try #require(client.turn(waiting: 0)).count { $0.sender != "org.freedesktop.DBus" }
            try await Task.sleep(for: .milliseconds(5))
        }
        let (time, taken) = (clock.now - start, try processorTime(of: machine.device.pid) - before)
        // What is too short for the process's clock would pass whatever the service does.
        try #require(taken >= .milliseconds(20))
        return taken / time
    }

    /// Returns the processor time that a process has taken, in steps of 10 ms; see proc_pid_stat(5).
    private func processorTime(of process: Int32) throws -> Duration {
        let text = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        // The name, in parentheses, may have spaces. What follows begins with the third field.
        let fields = try #require(text.split(separator: ")").last).split(separator: " ")
        let ticks = try (#require(Int(fields[11])) + #require(Int(fields[12])))
        return .seconds(ticks) / sysconf(Int32(_SC_CLK_TCK))
    }

    @Test func `descriptors that come with calls stay out`() async throws {
        try await withMachine { machine in
            let (store, raw) = (try machine.store(), try RawClient(machine.bus, as: Users.client))
            try await store.set("key", .integer(0))
            func count() throws -> Int {
                try FileManager.default.contentsOfDirectory(atPath: "/proc/\(machine.device.pid)/fd").count
            }
            let before = try count()
            let descriptors = try (0..<16).map { _ in try #require(Optional(open("/dev/null", O_RDONLY))) }
            defer { for descriptor in descriptors { close(descriptor) } }
            var call = WireMessage()
            (call.destination, call.path, call.interface) = (BusNames.service, store.path, BusNames.storeInterface)
            (call.member, call.signature, call.descriptors) = ("Synchronize", "t", 16)
            call.body = [UInt8](repeating: 0, count: 8)
            var answers: [WireReply] = []
            for flags in [0, 1] as [UInt8] {
                call.flags = flags
                for _ in 0..<100 { raw.send(call.bytes(serial: raw.nextSerial()), with: descriptors) }
            }
            while answers.count < 100 {
                answers += try #require(raw.turn(waiting: 1000)).filter { $0.errorName != nil }
            }
            try await store.set("key", .integer(1))
            #expect(try count() == before)
        }
    }

    @Test func `calls that wait don't keep what nobody reads of them`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.set("large", .data([UInt8](repeating: 1, count: 1_000_000)))
            nonisolated(unsafe) let raw = try RawClient(machine.bus, as: Users.client)
            for _ in 0..<20 { raw.store(store.path, "GetSnapshot", 0, 0) }
            var call = WireMessage()
            (call.destination, call.path, call.interface) = (BusNames.service, store.path, BusNames.storeInterface)
            (call.member, call.signature) = ("GetSnapshot", "tt")
            var arguments = Wire()
            for number in [0, 0] as [UInt64] { arguments.number(number) }
            call.body = arguments.bytes
            // dbus-daemon doesn't pass these on. For each of them, the service would keep 4 MiB.
            call.unknownField = 4 << 20
            nonisolated(unsafe) let large = call
            try await elsewhere { for _ in 0..<60 { raw.send(large.bytes(serial: raw.nextSerial())) } }
            let other = try machine.store(as: nil)
            for number in 0..<20 { try await other.set("key", .integer(Int64(number))) }
            #expect(try #require(ProcessMemory.privateDirty(of: machine.device.pid)) < 96 << 10)
            #expect(machine.device.exit == nil)
            withExtendedLifetime(raw) {}
        }
    }

    @Test func `messages that are nonsense are answered with an error`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            for (path, interface, member) in [
                ("/", "org.example.UbiquitousStore", "GetValue"),
                (BusNames.managerPath, "org.example.None", "GetValue"),
                (BusNames.managerPath, BusNames.storeInterface, "GetValue"),
                (BusNames.usersPath, BusNames.accountInterface, "SyncNow"), ("/org/example", "a.b", "c"),
            ] {
                let name = await errorName { try await client.call(path, interface, member) { try $0.append("key") } }
                #expect(["UnknownObject", "UnknownInterface", "UnknownMethod"].contains(name), "\(path) \(name)")
            }
        }
    }

    @Test func `more connections than a user may have are refused, and others are served`() async throws {
        try await withMachine { machine in
            var clients: [BusClient] = []
            let refusal = await errorName { while clients.count < 500 { clients.append(try machine.client()) } }
            // dbus-broker takes them all; the service has bounds of its own.
            #expect(machine.bus.program == .broker || !refusal.isEmpty)
            var names: Set<String> = []
            for client in clients { names.insert(await errorName { try await client.store(notes).subscribe() }) }
            #expect(names.isSubset(of: ["", "LimitsExceeded"]), "\(names)")
            let other = try machine.store(as: nil)
            try await other.set("key", .integer(1))
            #expect(try await other.value("key") == .integer(1))
            for client in clients { client.connection.close() }
            #expect(machine.device.exit == nil)
        }
    }

    @Test func `more matches than a connection may have are the bus's to refuse, and others are served`() async throws {
        try await withMachine { machine in
            let raw = try RawClient(machine.bus, as: Users.client)
            for number in 0..<5000 {
                raw.addMatch("type='signal',sender='\(BusNames.service)',arg0='\(number)'")
            }
            let other = try machine.store(as: nil)
            try await other.set("key", .integer(1))
            #expect(try await other.value("key") == .integer(1))
            withExtendedLifetime(raw) {}
            #expect(machine.device.exit == nil)
        }
    }

    @Test func `fifty clients that ask for much and read nothing don't hold the others up`() async throws {
        try await withMachine { machine in
            let (store, other) = (try machine.store(), try machine.store(as: nil))
            try await store.set("large", .data([UInt8](repeating: 1, count: 1_000_000)))
            let deaf = try (0..<50).map { _ in try RawClient(machine.bus, as: Users.client) }
            for client in deaf { client.askForMuch(store.path) }
            for number in 0..<50 { try await other.set("key", .integer(Int64(number))) }
            #expect(try await other.value("key") == .integer(49))
            // At most 24 MiB are in transit per user.
            #expect(try #require(ProcessMemory.privateDirty(of: machine.device.pid)) < 96 << 10)
            #expect(machine.device.exit == nil)
            withExtendedLifetime(deaf) {}
        }
    }

    @Test func `clients come and go by the hundred`() async throws {
        try await withMachine { machine in
            for round in 0..<200 {
                let store = try machine.store()
                try await store.subscribe(0x1)
                try await store.set("key", .integer(Int64(round)))
                store.client.connection.close()
            }
            #expect(try await machine.store().value("key") == .integer(199))
        }
    }
}
