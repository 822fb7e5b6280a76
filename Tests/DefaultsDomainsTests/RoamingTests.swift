// SPDX-License-Identifier: Apache-2.0

import Foundation
import ManagedDefaults
import PropertyList
import SDBus
import Synchronization
import Testing
import UbiquitousStore
import UbiquitousStoreTesting

import class DefaultsDomains.UserDefaults

@testable import DefaultsDomains

/// Keys of an app's settings that are kept in its synced store.
@Suite(.serialized, .timeLimit(.minutes(30)))
struct RoamingTests {
    private static let store = "org.example.Editor.store"

    /// Returns the options of a device whose manifest names this process, or another program, and lets two keys roam.
    private static func options(program: String? = nil) throws -> Device.Options {
        let program = try program ?? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        var manifest = ManifestText(store, application: editor, executables: [program])
        manifest.ubiquitousDefaults = ["colour", "view.*"]
        var options = Device.Options()
        options.manifests = [manifest]
        return options
    }

    private static func with(_ body: (DefaultsDesk) async throws -> Void) async throws {
        try await DefaultsDesk.with(try options(), body)
    }

    @BusActor private func synced(_ desk: DefaultsDesk) throws -> StoreClient {
        try BusClient(desk.bus).store(Self.store)
    }

    /// Collects an object's changes.
    private final class Told: Sendable {
        private let changes = Mutex<[UserDefaults.Change]>([])
        private let loop = Mutex<Task<Void, Never>?>(nil)

        init(_ defaults: UserDefaults) {
            let stream = defaults.changes
            loop.withLock {
                $0 = Task { [weak self] in
                    for await change in stream { self?.changes.withLock { $0.append(change) } }
                }
            }
        }

        deinit { loop.withLock { $0?.cancel() } }

        func has(_ reason: UserDefaults.Change.Reason, _ keys: [String]) -> Bool {
            changes.withLock { $0.contains { $0.reason == reason && $0.keys == keys } }
        }
    }

    @Test func `a key that roams is written to the store, and the domain's own value is dropped`() async throws {
        try await Self.with { (desk: DefaultsDesk) async throws in
            let (other, store) = (try await desk.other(), try await synced(desk))
            try await other.apply([("colour", .string("old")), ("size", .integer(1))])
            let defaults = desk.settings()
            // The first read waits for five seconds at most.
            try await eventually("the values arrive") { defaults.string(forKey: "colour") == "old" }
            defaults.set("red", forKey: "colour")
            defaults.set(2, forKey: "size")
            #expect(defaults.string(forKey: "colour") == "red")
            try await desk.settle(defaults)
            #expect(defaults.explain("colour").map(\.layer) == ["synced store"])
            #expect(try await store.everything() == ["colour": .string("red")])
            #expect(try await other.snapshot().values == ["size": .integer(2)])
            defaults.removeObject(forKey: "colour")
            #expect(defaults.object(forKey: "colour") == nil)
            try await desk.settle(defaults)
            #expect(try await store.everything().isEmpty)
        }
    }

    @Test func `an outbox doesn't bring back what this process has set or removed`() {
        var roaming = Roaming(store: Self.store, keys: .none)
        func write(_ key: Text) -> Outbox.Write {
            Outbox.Write(key: key, value: .integer(1), isHost: false, store: Text(Self.store), time: 1, generation: 0)
        }
        roaming.noteSet("removed", at: 2)
        roaming.preload([write("removed"), write("kept")])
        #expect(roaming.preloaded == ["kept": .integer(1)])
        roaming.noteSet("kept", at: 3)
        #expect(roaming.preloaded.isEmpty)
    }

    @Test func `the app's store has the same value in the same process at once, both ways`() async throws {
        try await Self.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            let told = Told(defaults)
            let store = try await UbiquitousStore.open(identifier: Self.store, on: .address(desk.bus.address))
            let (colour, size) = (UbiquitousStore.Key<String>("colour"), UbiquitousStore.Key<Int>("size"))
            defaults.set("red", forKey: "colour")
            #expect(store[colour] == "red")
            store[colour] = "green"
            store[size] = 9
            #expect(defaults.string(forKey: "colour") == "green" && defaults.object(forKey: "size") == nil)
            try await eventually("both are told") { told.has(.ownProcess, ["colour"]) }
            try await defaults.set("blue", for: .init("colour", default: ""))
            #expect(store[colour] == "blue")
        }
    }

    @Test func `what another program writes to the store arrives, with a reason`() async throws {
        try await Self.with { (desk: DefaultsDesk) async throws in
            let (defaults, store) = (desk.settings(), try await synced(desk))
            #expect(defaults.object(forKey: "colour") == nil)
            let told = Told(defaults)
            try await store.set("colour", .string("red"))
            try await eventually("it arrives") { defaults.string(forKey: "colour") == "red" }
            try await eventually("it is told") { told.has(.otherProcess, ["colour"]) }
        }
    }

    @Test func `a write on another device arrives, and so does a removal`() async throws {
        let folder = try TemporaryDirectory()
        let address = "folder://" + (try folder.makeDirectory("account", mode: 0o700))
        try await Self.with { (laptop: DefaultsDesk) async throws in
            try await Self.with { (phone: DefaultsDesk) async throws in
                let (mine, theirs) = (laptop.settings(), phone.settings())
                let told = Told(mine)
                let initial = Posting(UserDefaults.completedInitialCloudSyncNotification)
                let accounts = try await [laptop, phone].mapInTurn { try await BusClient($0.bus).account }
                try await accounts[0].join(address)
                theirs.set("red", forKey: "colour")
                try await accounts[1].join(address)
                try await eventually("the first download is told") { initial.count > 0 }
                try await sync(accounts, "it arrives") { mine.string(forKey: "colour") == "red" }
                try await eventually("it is told") { told.has(.otherDevice, ["colour"]) }
                mine.removeObject(forKey: "colour")
                try await sync(accounts, "the removal arrives") { theirs.object(forKey: "colour") == nil }
            }
        }
    }

    private func sync(
        _ accounts: [AccountClient], _ what: String, until condition: @Sendable () -> Bool
    ) async throws {
        try await eventually(what) {
            for account in accounts { try await account.syncNow() }
            return condition()
        }
    }

    /// Counts how often a notification is posted, about any object.
    private final class Posting: Sendable {
        private let posted = Atomic<Int>(0)
        var count: Int { posted.load(ordering: .acquiring) }

        init(_ name: NSNotification.Name) {
            _ = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { [weak self] _ in
                self?.posted.add(1, ordering: .acquiringAndReleasing)
            }
        }
    }

    @Test func `what is set while nobody has signed in is told to stay on this device`() async throws {
        try await Self.with { (desk: DefaultsDesk) async throws in
            let posted = Posting(UserDefaults.noCloudAccountNotification)
            let defaults = desk.settings()
            #expect(defaults.object(forKey: "colour") == nil)
            defaults.set("red", forKey: "colour")
            try await eventually("it is told") { posted.count == 1 }
            defaults.set("green", forKey: "colour")
            try await desk.settle(defaults)
            #expect(posted.count == 1)
        }
    }

    @Test func `an administrator says which keys roam, and an empty list says that none do`() async throws {
        try await Self.with { (desk: DefaultsDesk) async throws in
            let (defaults, other) = (desk.settings(), try await desk.other())
            #expect(defaults.object(forKey: "colour") == nil)
            defaults.set("red", forKey: "colour")
            try await desk.settle(defaults)
            try await other.set("colour", .string("own"))
            let path = desk.device.managedDirectory + "/10-roaming.plist"
            func manage(_ keys: String) throws {
                try """
                <plist version="1.0"><dict><key>Ubiquitous</key><dict><key>\(editor)</key><array>\(keys)</array>
                </dict></dict></plist>
                """.write(toFile: path, atomically: true, encoding: .utf8)
            }
            #expect(defaults.string(forKey: "colour") == "red")
            try manage("")
            try await eventually("nothing roams") { defaults.string(forKey: "colour") == "own" }
            try manage("<string>lesson</string>")
            try await eventually("the lesson roams") {
                defaults.set(1, forKey: "lesson")
                return defaults.explain("lesson").map(\.layer) == ["synced store"]
            }
            #expect(defaults.string(forKey: "colour") == "own")
            unlink(path)
            try await eventually("the manifest counts again") { defaults.string(forKey: "colour") == "red" }
        }
    }

    @Test func `a program that runs follows a manifest that makes other keys roam`() async throws {
        try await Self.with { (desk: DefaultsDesk) async throws in
            let (defaults, other) = (desk.settings(), try await desk.other())
            defaults.set("red", forKey: "colour")
            try await desk.settle(defaults)
            try await other.apply([("colour", .string("own")), ("lesson", .integer(1))])
            var manifest = try #require(Self.options().manifests.first)
            manifest.ubiquitousDefaults = ["lesson"]
            try manifest.xml.write(
                toFile: desk.device.manifestDirectory + "/app0.plist", atomically: true, encoding: .utf8)
            try await eventually("the colour roams no longer") { defaults.string(forKey: "colour") == "own" }
            defaults.set(2, forKey: "lesson")
            try await desk.settle(defaults)
            #expect(defaults.explain("lesson").first?.layer == "synced store")
        }
    }

    @Test func `a program that runs follows a manifest that is installed meanwhile`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            defaults.set("red", forKey: "colour")
            try await desk.settle(defaults)
            let manifest = try #require(Self.options().manifests.first)
            try manifest.xml.write(
                toFile: desk.device.manifestDirectory + "/app0.plist", atomically: true, encoding: .utf8)
            try await eventually("the colour roams") {
                defaults.set("green", forKey: "colour")
                return defaults.explain("colour").first?.layer == "synced store"
            }
        }
    }

    @Test func `what the store can't hold is ignored and told, at once or when the service says so`() async throws {
        try await Self.with { (desk: DefaultsDesk) async throws in
            let other = try await desk.other()
            try await other.apply([("colour", .string("own"))])
            let defaults = desk.settings()
            let (long, name) = ("view." + String(repeating: "k", count: 124), "view.large")
            let told = Told(defaults)
            defaults.set(1, forKey: long)
            #expect(defaults.object(forKey: long) == nil)
            try await eventually("the long key is told") { told.has(.refused, [long]) }
            defaults.set(Data(repeating: 1, count: 1 << 20), forKey: name)
            try await desk.settle(defaults)
            defaults.set(1, forKey: "colour")
            try await eventually("it is taken back") { defaults.string(forKey: "colour") == "own" }
            try await eventually("it is told") { told.has(.refused, ["colour"]) }
            await #expect(throws: UbiquitousStoreError.self) {
                try await defaults.set(1, for: .init("colour", default: 0))
            }
            try await desk.settle(defaults)
            #expect(try await other.snapshot().values["colour"] == .string("own"))
            #expect(defaults.string(forKey: "colour") == "own")
        }
    }

    // MARK: Without the service

    /// Returns the environment with which the program finds its manifest by itself.
    private static func variables(_ desk: DefaultsDesk) throws -> [String: String] {
        let home = desk.device.directory.path + "/data"
        let folder = home + "/ubiquitous-store/manifests.d"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        if !FileManager.default.fileExists(atPath: folder + "/app.plist") {
            try FileManager.default.copyItem(
                atPath: desk.device.manifestDirectory + "/app0.plist", toPath: folder + "/app.plist")
        }
        return ["XDG_DATA_HOME": home]
    }

    @Test func `what a program sets without a service is kept, and goes to the store when it comes`() async throws {
        let options = try Self.options(program: ChildProcess.built("defaults-app"))
        try await DefaultsDesk.with(started: false, options) { (desk: DefaultsDesk) async throws in
            let variables = try Self.variables(desk)
            #expect(try await desk.run("write", "colour", "red", variables: variables).exit == .code(0))
            let read = try await desk.run("read", "colour", variables: variables)
            #expect(read.output == "red", "\(desk.error)")
            try await desk.device.start()
            #expect(try await desk.run("read", "colour", variables: variables).output == "red", "\(desk.error)")
            #expect(try await synced(desk).everything() == ["colour": .string("red")])
            #expect(try await desk.other().snapshot().values.isEmpty)
            #expect(!OutboxFile(domain: Text(editor), directory: desk.state + "/ubiquitous-store/outbox").exists)
        }
    }

    @Test func `whoever delivers an outbox removes the value that the domain itself has`() async throws {
        try await DefaultsDesk.with(try Self.options(program: "/another")) { (desk: DefaultsDesk) async throws in
            let (store, other) = (try await synced(desk), try await desk.other())
            try await other.apply([("colour", .string("own")), ("view.size", .string("own"))])
            let directory = desk.state + "/ubiquitous-store/outbox"
            let writes = ["colour": .string("late"), "view.size": nil].map { key, value in
                Outbox.Write(
                    key: key, value: value, isHost: false, store: Text(Self.store), time: 1, generation: 0)
            }
            #expect(OutboxFile(domain: Text(editor), directory: directory).add(writes))
            try await deliver(directory, desk)
            #expect(try await store.everything() == ["colour": .string("late")])
            #expect(try await other.snapshot().values.isEmpty)
        }
    }

    @BusActor private func deliver(
        _ directory: String, _ desk: DefaultsDesk, _ change: (inout OutboxDelivery.Observer) -> Void = { _ in }
    ) async throws {
        let connection = try await ServiceConnection.open(.address(desk.bus.address), description: "test")
        var observer = OutboxDelivery.Observer()
        change(&observer)
        await OutboxDelivery(
            domain: Text(editor), from: Outboxes(directory: directory), over: connection, for: observer
        ).run()
    }

    @Test func `nothing is delivered that can't be removed, while a process is stopped that has the lock`()
        async throws
    {
        try await DefaultsDesk.with(try Self.options(program: "/another")) { (desk: DefaultsDesk) async throws in
            let other = try await desk.other()
            let directory = desk.state + "/ubiquitous-store/outbox"
            let write = Outbox.Write(key: "own", value: .string("late"), isHost: false, time: 1, generation: 0)
            let file = OutboxFile(domain: Text(editor), directory: directory)
            #expect(file.add([write]))
            let lock = open("\(directory)/\(editor).lock", O_RDWR)
            #expect(flock(lock, LOCK_EX) == 0)
            try await deliver(directory, desk)
            #expect(try await other.snapshot().values.isEmpty && file.exists)
            close(lock)
            try await deliver(directory, desk)
            #expect(try await other.snapshot().values == ["own": .string("late")] && !file.exists)
        }
    }

    @Test func `what an outbox has is sent by its program once it can be taken out`() async throws {
        try await DefaultsDesk.with(started: false) { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            defaults.set("early", forKey: "own")
            let file = OutboxFile(domain: Text(editor), directory: desk.outboxes)
            try await eventually("it is kept") { file.exists }
            let lock = open("\(desk.outboxes)/\(editor).lock", O_RDWR)
            #expect(flock(lock, LOCK_EX) == 0)
            try await desk.device.start()
            try await Task.sleep(for: .seconds(2))
            // If the program ended now, the next one would deliver it over what others have set meanwhile.
            #expect(try await desk.other().snapshot().values.isEmpty)
            close(lock)
            try await eventually("the service has it") { !defaults.isUnsettled }
            try await eventually("the outbox is removed") { !file.exists }
        }
    }

    @Test func `what a program means for the domain itself is not delivered to the store`() async throws {
        try await DefaultsDesk.with(try Self.options(program: "/another")) { (desk: DefaultsDesk) async throws in
            let (store, other) = (try await synced(desk), try await desk.other())
            try await other.apply([("colour", .string("own")), ("view.size", .string("own"))])
            try await store.set("colour", .string("synced"))
            let directory = desk.state + "/ubiquitous-store/outbox"
            let writes = ["colour": nil, "view.size": .string("late")].map { key, value in
                Outbox.Write(key: key, value: value, isHost: false, isOwn: true, time: 1, generation: 0)
            }
            #expect(OutboxFile(domain: Text(editor), directory: directory).add(writes))
            try await deliver(directory, desk)
            #expect(try await store.everything() == ["colour": .string("synced")])
            #expect(try await other.snapshot().values == ["view.size": .string("late")])
        }
    }

    @Test func `a key that is removed without a service stays as others have set it since`() async throws {
        let options = try Self.options(program: ChildProcess.built("defaults-app"))
        try await DefaultsDesk.with(options) { (desk: DefaultsDesk) async throws in
            let (store, other, variables) = (try await synced(desk), try await desk.other(), try Self.variables(desk))
            try await other.set("colour", .string("own"))
            let own = try await other.snapshot().generation
            let generation = try await store.set("colour", .string("old"))
            desk.device.kill()
            #expect(try await desk.run("remove", "colour", variables: variables).exit == .code(0))
            let file = OutboxFile(domain: Text(editor), directory: desk.state + "/ubiquitous-store/outbox")
            // As if the program had known the service.
            try file.update { write in
                var write = write
                write.generation = write.store == nil ? own : generation
                return write
            }
            try await desk.device.start()
            try await synced(desk).set("colour", .string("newer"))
            let read = try await desk.run("read", "colour", variables: variables)
            #expect(read.output == "newer", "\(desk.error)")
            #expect(try await desk.other().snapshot().values.isEmpty)
        }
    }

    @Test(arguments: [nil, Self.store])
    func `a program that ends before it can remove what it has delivered doesn't have it replace newer values`(
        store: String?
    ) async throws {
        try await DefaultsDesk.with(try Self.options(program: "/another")) { (desk: DefaultsDesk) async throws in
            let directory = desk.state + "/ubiquitous-store/outbox"
            let (file, key) = (OutboxFile(domain: Text(editor), directory: directory), store == nil ? "size" : "colour")
            let write = Outbox.Write(
                key: Text(key), value: .string("old"), isHost: false, store: store.map { Text($0) }, time: 1,
                generation: 0)
            #expect(file.add([write]))
            let path = directory + "/\(OutboxFile.fileName(editor)).plist"
            let copy = directory + "/copy"
            try await deliver(directory, desk) {
                $0.delivered = { _ in try? FileManager.default.copyItem(atPath: path, toPath: copy) }
            }
            func set(_ value: Value) async throws {
                if store != nil {
                    try await synced(desk).set(key, value)
                } else {
                    try await desk.other().set(key, value)
                }
            }
            func value() async throws -> Value? {
                store != nil
                    ? try await synced(desk).everything()[Text(key)]
                    : try await desk.other().snapshot().values[Text(key)]
            }
            #expect(try await value() == .string("old") && !file.exists)
            try await set(.string("newer"))
            try FileManager.default.moveItem(atPath: copy, toPath: path)
            try await deliver(directory, desk)
            #expect(try await value() == .string("newer") && !file.exists)
        }
    }

    @Test func `of writes that belong to one place the last one is delivered`() async throws {
        try await DefaultsDesk.with(try Self.options(program: "/another")) { (desk: DefaultsDesk) async throws in
            let directory = desk.state + "/ubiquitous-store/outbox"
            let store = try await synced(desk)
            let generation = try await store.set("view.size", .string("x"))
            let writes = [("late", Self.store, 2, generation), ("early", nil, 1, 0)].map {
                value, store, time, generation in
                Outbox.Write(
                    key: "colour", value: .string(Text(value)), isHost: false, store: store.map { Text($0) },
                    time: time, generation: generation)
            }
            try """
            <plist version="1.0"><dict><key>Ubiquitous</key><dict><key>\(editor)</key><array><string>*</string></array>
            </dict></dict></plist>
            """.write(toFile: desk.device.managedDirectory + "/10.plist", atomically: true, encoding: .utf8)
            let file = OutboxFile(domain: Text(editor), directory: directory)
            #expect(file.add(writes))
            try await deliver(directory, desk)
            #expect(try await store.everything() == ["view.size": .string("x"), "colour": .string("late")])
            #expect(!file.exists)
        }
    }

    @Test func `what the program that delivers has set later is not replaced`() async throws {
        try await DefaultsDesk.with(try Self.options(program: "/another")) { (desk: DefaultsDesk) async throws in
            let directory = desk.state + "/ubiquitous-store/outbox"
            let store = try await synced(desk)
            try await store.set("colour", .string("newer"))
            let file = OutboxFile(domain: Text(editor), directory: directory)
            let writes = ["colour", "view.size"].map {
                Outbox.Write(
                    key: $0, value: .string("older"), isHost: false, store: Text(Self.store), time: 5, generation: 0)
            }
            #expect(file.add(writes))
            try await deliver(directory, desk) { observer in
                observer.hasSet = { $0.key == "colour" && $1 == Text(Self.store) && $0.time == 5 }
            }
            #expect(try await store.everything() == ["colour": .string("newer"), "view.size": .string("older")])
            #expect(!file.exists)
        }
    }

    @Test(arguments: ["colour", "lesson"])
    func `what a program sets without a service goes where the administrator says`(key: String) async throws {
        // The manifest, which is all that the program knows, lets the colour roam, and the administrator the lesson.
        let options = try Self.options(program: ChildProcess.built("defaults-app"))
        try await DefaultsDesk.with(started: false, options) { (desk: DefaultsDesk) async throws in
            let variables = try Self.variables(desk)
            try """
            <plist version="1.0"><dict><key>Ubiquitous</key><dict><key>\(editor)</key><array><string>lesson</string></array>
            </dict></dict></plist>
            """.write(toFile: desk.device.managedDirectory + "/10.plist", atomically: true, encoding: .utf8)
            #expect(try await desk.run("write", key, "5", variables: variables).exit == .code(0))
            try await desk.device.start()
            // Whoever delivers it names the program that wrote it, and so learns that program's store.
            try await deliver(desk.state + "/ubiquitous-store/outbox", desk)
            #expect(try await desk.run("read", key, variables: variables).output == "5", "\(desk.error)")
            let (store, domain) = (try await synced(desk), try await desk.other())
            let values = (try await store.everything(), try await domain.snapshot().values)
            #expect(values.0.isEmpty == (key == "colour") && values.1.isEmpty == (key == "lesson"), "\(values)")
        }
    }

    @Test(arguments: [true, false])
    func `of an outbox's value and another device's that has arrived since, the later one wins`(isLater: Bool)
        async throws
    {
        let folder = try TemporaryDirectory()
        let address = "folder://" + (try folder.makeDirectory("account", mode: 0o700))
        try await Self.with { (laptop: DefaultsDesk) async throws in
            try await Self.with { (phone: DefaultsDesk) async throws in
                let accounts = try await [laptop, phone].mapInTurn { try await BusClient($0.bus).account }
                let (mine, theirs) = (try await synced(laptop), try await synced(phone))
                for account in accounts { try await account.join(address) }
                let generation = try await mine.set("colour", .string("old"))
                for account in accounts { try await account.syncNow() }
                let before = Int64(Date().timeIntervalSince1970 * 1_000_000)
                try await theirs.set("colour", .string("theirs"))
                let after = Int64(Date().timeIntervalSince1970 * 1_000_000) + 1000
                for account in accounts.reversed() { try await account.syncNow() }
                #expect(try await mine.value("colour") == .string("theirs"))
                let write = Outbox.Write(
                    key: "colour", value: .string("late"), isHost: false, store: Text(Self.store),
                    time: isLater ? after : before, generation: generation)
                let directory = laptop.state + "/ubiquitous-store/outbox"
                #expect(OutboxFile(domain: Text(editor), directory: directory).add([write]))
                try await deliver(directory, laptop)
                let (winner, loser) = isLater ? ("late", "theirs") : ("theirs", "late")
                #expect(try await mine.value("colour") == .string(Text(winner)))
                #expect(try await mine.history("colour").first?["value"] == .string(Text(loser)))
                for account in accounts { try await account.syncNow() }
                #expect(try await theirs.value("colour") == .string(Text(winner)))
            }
        }
    }

    @Test func `an outbox's value of a key that roams loses to what the store got since`() async throws {
        let options = try Self.options(program: ChildProcess.built("defaults-app"))
        try await DefaultsDesk.with(options) { (desk: DefaultsDesk) async throws in
            let store = try await synced(desk)
            let generation = try await store.set("colour", .string("old"))
            try await store.set("colour", .string("newer"))
            let writes = ["colour", "view.size"].map {
                Outbox.Write(
                    key: $0, value: .string("late"), isHost: false, store: Text(Self.store), time: 1,
                    generation: generation)
            }
            let file = OutboxFile(domain: Text(editor), directory: desk.state + "/ubiquitous-store/outbox")
            #expect(file.add(writes))
            let read = try await desk.run("read", "colour", "view.size", variables: try Self.variables(desk))
            #expect(read.output == "newer late", "\(desk.error)")
            #expect(!file.exists)
        }
    }
}

extension Array {
    /// Maps the elements one after the other.
    fileprivate func mapInTurn<T>(_ body: (Element) async throws -> T) async rethrows -> [T] {
        var results: [T] = []
        for element in self { results.append(try await body(element)) }
        return results
    }
}
