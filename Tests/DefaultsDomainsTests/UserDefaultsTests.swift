// SPDX-License-Identifier: Apache-2.0

import Foundation
import Observation
import PropertyList
import SDBus
import Synchronization
import Testing
import UbiquitousStoreTesting

import class DefaultsDomains.UserDefaults

@testable import DefaultsDomains

/// Apple's class with a real service.
@Suite(.serialized, .timeLimit(.minutes(30)))
struct UserDefaultsTests {
    /// Counts how often a notification is posted about an object, on any thread.
    private final class Postings: Sendable {
        private let observers = Mutex<[any NSObjectProtocol & Sendable]>([])
        private let posted = Atomic<Int>(0)

        var count: Int { posted.load(ordering: .acquiring) }

        init(_ name: NSNotification.Name, _ object: UserDefaults?) {
            _ = NotificationCenter.default.addObserver(forName: name, object: object, queue: nil) { [weak self] _ in
                self?.posted.add(1, ordering: .acquiringAndReleasing)
            }
        }
    }

    @Test func `what is set is read at once, by this process and soon by others, and the other way round`() async throws
    {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let (defaults, other) = (desk.settings(), try await desk.other())
            defaults.set(14, forKey: "size")
            #expect(defaults.integer(forKey: "size") == 14)
            try await eventually("the service has it") { try await other.snapshot().values["size"] == .integer(14) }
            try await other.set("size", .integer(15))
            try await eventually("the other's value is read") { defaults.integer(forKey: "size") == 15 }
            try await desk.other(isHost: true).set("size", .integer(16))
            try await eventually("this host's value wins") { defaults.integer(forKey: "size") == 16 }
            defaults.removeObject(forKey: "size")
            try await eventually("the removal arrives") { try await other.snapshot().values.isEmpty }
            #expect(defaults.integer(forKey: "size") == 16)
        }
    }

    @Test func `every type comes back as what it was, and a property list is a property list`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            let date = Date(timeIntervalSinceReferenceDate: 0.1)
            defaults.set(true, forKey: "boolean")
            defaults.set(1.5 as Float, forKey: "float")
            defaults.set(["a", "b"], forKey: "strings")
            defaults.set(["a": [1, date]], forKey: "dictionary")
            defaults.set(Data([1, 2]), forKey: "data")
            defaults.set(URL(string: "https://example.org/a"), forKey: "url")
            #expect(defaults.object(forKey: "boolean") as? Bool == true)
            #expect(defaults.float(forKey: "float") == 1.5 && defaults.string(forKey: "float") == "1.5")
            #expect(
                defaults.stringArray(forKey: "strings") == ["a", "b"] && defaults.array(forKey: "strings")?.count == 2)
            let inner = defaults.dictionary(forKey: "dictionary")?["a"] as? [Any]
            #expect(inner?.first as? Int == 1 && inner?.last as? Date == date)
            #expect(defaults.data(forKey: "data") == Data([1, 2]))
            #expect(defaults.url(forKey: "url") == URL(string: "https://example.org/a"))
            #expect(defaults.string(forKey: "data") == nil && defaults.url(forKey: "none") == nil)
        }
    }

    @Test func `what is no property list, and keys that are too long, are ignored, told, and end nothing`() async throws
    {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            let refused = Atomic<Int>(0)
            let loop = Task { [changes = defaults.changes] in
                for await change in changes where change.reason == .refused && change.error != nil {
                    refused.add(1, ordering: .relaxed)
                }
            }
            defaults.set("kept", forKey: "key")
            defaults.set(NSNull(), forKey: "key")
            defaults.set(NSObject(), forKey: "key")
            defaults.set(1, forKey: String(repeating: "k", count: 513))
            defaults.set("a\0b", forKey: "nul")
            defaults.set(1, forKey: "a\0b")
            defaults.set(1, forKey: "")
            #expect(defaults.string(forKey: "key") == "kept" && defaults.object(forKey: "nul") == nil)
            try await eventually("each is told") { refused.load(ordering: .relaxed) == 6 }
            loop.cancel()
        }
    }

    @Test func `registered values are below everything, merge, and are never stored`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            defaults.register(defaults: ["size": 12, "a": 1])
            defaults.register(defaults: ["a": 2])
            #expect(defaults.integer(forKey: "size") == 12 && defaults.integer(forKey: "a") == 2)
            #expect(desk.settings("suite").integer(forKey: "size") == 12)
            defaults.set(14, forKey: "size")
            #expect(defaults.integer(forKey: "size") == 14)
            defaults.removeObject(forKey: "size")
            #expect(defaults.integer(forKey: "size") == 12)
            #expect(defaults.volatileDomain(forName: UserDefaults.registrationDomain)["a"] as? Int == 2)
            try await desk.settle(defaults)
            #expect(try await desk.other().snapshot().values.isEmpty)
        }
    }

    @Test func `suites are searched in the order in which they were added, and nothing is written to them`()
        async throws
    {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            try await desk.other("one").set("key", .integer(1))
            try await desk.other("two").apply([("key", .integer(2)), ("other", .integer(2))])
            defaults.addSuite(named: "one")
            defaults.addSuite(named: "two")
            #expect(defaults.integer(forKey: "key") == 1 && defaults.integer(forKey: "other") == 2)
            #expect(defaults.dictionaryRepresentation()["key"] as? Int == 1)
            defaults.removeSuite(named: "one")
            #expect(defaults.integer(forKey: "key") == 2)
            defaults.set(3, forKey: "key")
            #expect(defaults.integer(forKey: "key") == 3 && desk.settings("two").integer(forKey: "key") == 2)
        }
    }

    @Test func `the global domain is below the own one, and its host layer above its own`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            try await desk.other("NSGlobalDomain").apply([("a", .integer(1)), ("b", .integer(1))])
            try await desk.other("NSGlobalDomain", isHost: true).set("a", .integer(2))
            let defaults = desk.settings()
            defaults.set(3, forKey: "b")
            #expect(defaults.integer(forKey: "a") == 2 && defaults.integer(forKey: "b") == 3)
        }
    }

    @Test func `the notification is of this process's changes, on its thread, and not of equal values`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let (defaults, other) = (desk.settings(), try await desk.other())
            let postings = Postings(UserDefaults.didChangeNotification, defaults)
            defaults.set(1, forKey: "key")
            #expect(postings.count == 1)
            defaults.set(1, forKey: "key")
            defaults.removeObject(forKey: "absent")
            #expect(postings.count == 1)
            defaults.removeObject(forKey: "key")
            #expect(postings.count == 2)
            defaults.setPersistentDomain(["a": 1], forName: editor)
            defaults.setVolatileDomain(["b": 1], forName: "mine")
            #expect(postings.count == 4)
            try await eventually("the service has it") { try await other.snapshot().values["a"] != nil }
            try await other.set("a", .integer(2))
            try await eventually("it arrives") { defaults.integer(forKey: "a") == 2 }
            #expect(postings.count == 4)
        }
    }

    @Test func `a persistent domain is replaced as a whole, and nil when it is empty`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            defaults.set(1, forKey: "old")
            defaults.setPersistentDomain(["a": 1, "b": "two"], forName: editor)
            #expect(defaults.object(forKey: "old") == nil && defaults.string(forKey: "b") == "two")
            #expect(defaults.persistentDomain(forName: editor)?.count == 2)
            #expect(defaults.persistentDomainNames() as? [String] == [editor])
            defaults.removePersistentDomain(forName: editor)
            #expect(defaults.persistentDomain(forName: editor) == nil)
            defaults.setPersistentDomain(["a": 1], forName: UserDefaults.argumentDomain)
            #expect(defaults.persistentDomain(forName: UserDefaults.argumentDomain) == nil)
            #expect(defaults.object(forKey: "a") == nil)
        }
    }

    @Test func `volatile domains are named, replaced and not merged; those of other names are searched by nothing`()
        async throws
    {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            defaults.setVolatileDomain(["a": 1], forName: UserDefaults.argumentDomain)
            defaults.set(2, forKey: "a")
            #expect(defaults.integer(forKey: "a") == 1)
            defaults.setVolatileDomain(["b": 1], forName: UserDefaults.argumentDomain)
            #expect(defaults.integer(forKey: "a") == 2)
            defaults.setVolatileDomain(["c": 1], forName: "mine")
            #expect(defaults.object(forKey: "c") == nil && defaults.volatileDomain(forName: "mine")["c"] as? Int == 1)
            #expect(defaults.volatileDomainNames == ["NSArgumentDomain", "NSRegistrationDomain", "mine"])
            defaults.removeVolatileDomain(forName: UserDefaults.argumentDomain)
            #expect(defaults.volatileDomain(forName: UserDefaults.argumentDomain).isEmpty)
        }
    }

    @Test func `an administrator's file wins over everything, while it is there`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            defaults.setVolatileDomain(["size": 20], forName: UserDefaults.argumentDomain)
            defaults.set(10, forKey: "size")
            defer { defaults.removeVolatileDomain(forName: UserDefaults.argumentDomain) }
            let path = desk.device.managedDirectory + "/10-size.plist"
            let file = """
                <plist version="1.0"><dict><key>Forced</key><dict><key>\(editor)</key>
                <dict><key>size</key><integer>14</integer></dict></dict></dict></plist>
                """
            #expect(!defaults.objectIsForced(forKey: "size") && defaults.integer(forKey: "size") == 20)
            try file.write(toFile: path, atomically: true, encoding: .utf8)
            try await eventually("it is in force") { defaults.integer(forKey: "size") == 14 }
            #expect(defaults.objectIsForced(forKey: "size") && defaults.explain("size").first?.file == path)
            #expect(defaults.objectIsForced(forKey: "size", inDomain: editor))
            #expect(!defaults.objectIsForced(forKey: "size", inDomain: UserDefaults.globalDomain))
            defaults.set(11, forKey: "size")
            #expect(defaults.integer(forKey: "size") == 14)
            unlink(path)
            try await eventually("it is gone") { !defaults.objectIsForced(forKey: "size") }
            defaults.removeVolatileDomain(forName: UserDefaults.argumentDomain)
            #expect(defaults.integer(forKey: "size") == 11)
        }
    }

    @Test func `observers are told of effective changes, whoever made them, until their token goes`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let (defaults, other) = (desk.settings(), try await desk.other())
            let seen = Mutex<[Int]>([])
            var token: NSKeyValueObservation? = defaults.observe("size", options: [.initial, .new, .old]) { _, change in
                seen.withLock { $0.append(change.newValue as? Int ?? -1) }
            }
            #expect(token != nil)
            defaults.set(1, forKey: "size")
            defaults.set(1, forKey: "size")
            defaults.set(5, forKey: "other")
            try await eventually("own changes") { seen.withLock { $0 } == [-1, 1] }
            try await eventually("the service has it") { try await other.snapshot().values["size"] == .integer(1) }
            try await other.set("size", .integer(2))
            try await eventually("another's") { seen.withLock { $0 } == [-1, 1, 2] }
            token = nil
            defaults.set(3, forKey: "size")
            await DefaultsDesk.drain()
            #expect(seen.withLock { $0 } == [-1, 1, 2])
        }
    }

    @Test func `an observer is told of a change while its first value is read`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            let seen = Mutex<[Int?]>([])
            let token = defaults.observe(\.testedSizeThatIsSetWhenRead, options: [.old, .new]) { _, change in
                seen.withLock { $0 += [change.oldValue, change.newValue] }
            }
            try await eventually("the change is told") { seen.withLock { $0 } == [0, 1] }
            withExtendedLifetime(token) {}
        }
    }

    @Test func `an observer's first value comes before a change while it is told`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            let seen = Mutex<[Int?]>([])
            let token = defaults.observe("size", options: [.initial, .new]) { defaults, change in
                let isFirst = seen.withLock(\.isEmpty)
                if isFirst { defaults.set(1, forKey: "size") }
                seen.withLock { $0.append(change.newValue as? Int) }
            }
            try await eventually("the change is told") { seen.withLock { $0 } == [nil, 1] }
            withExtendedLifetime(token) {}
        }
    }

    @Test func `observers see the changes that several threads make in their order`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            let seen = Mutex<[(old: Int?, new: Int?)]>([])
            let token = defaults.observe("size", options: [.old, .new]) { _, change in
                seen.withLock { $0.append((change.oldValue as? Int, change.newValue as? Int)) }
            }
            await withTaskGroup { group in
                for writer in 0..<4 {
                    group.addTask { for number in 0..<500 { defaults.set(number * 4 + writer, forKey: "size") } }
                }
            }
            await DefaultsDesk.drain()
            let changes = seen.withLock { $0 }
            #expect(changes.count == 2000)
            #expect(zip(changes, changes.dropFirst()).allSatisfy { $0.new == $1.old })
            withExtendedLifetime(token) {}
        }
    }

    @Test func `an observer that another one ends is not called any more`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            let tokens = Mutex<[NSKeyValueObservation]>([])
            let calls = Atomic<Int>(0)
            let made = (0..<8).map { _ in
                defaults.observe("size") { _, _ in
                    calls.add(1, ordering: .relaxed)
                    for token in tokens.withLock({ $0 }) { token.invalidate() }
                }
            }
            tokens.withLock { $0 = made }
            defaults.set(1, forKey: "size")
            await DefaultsDesk.drain()
            #expect(calls.load(ordering: .relaxed) == 1)
        }
    }

    @Test func `Apple's call compares dictionaries and arrays of any contents`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            let seen = Mutex<[Int?]>([])
            let token = defaults.observe(\.testedProfile, options: [.new]) { _, change in
                seen.withLock { $0.append((change.newValue ?? nil)?["size"] as? Int) }
            }
            let changes: [(Any?, String)] = [
                (1, "unrelated"), (["size": 1, "list": [1, "a"]] as [String: Any], "tested profile"), (2, "unrelated"),
                (["size": 2], "tested profile"), (nil, "tested profile"), (nil, "unrelated"),
            ]
            for (value, key) in changes {
                defaults.set(value, forKey: key)
                await DefaultsDesk.drain()
            }
            #expect(seen.withLock { $0 } == [1, 2, nil])
            withExtendedLifetime(token) {}
        }
    }

    @Test func `a key whose type is an optional has what was set, and nil removes it`() async throws {
        struct Point: Codable, Equatable { var x = 1 }
        enum Side: String, Codable { case left }
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            func check<Value: Codable & Equatable>(_ value: Value) {
                let key = UserDefaults.Key<Value?>("\(Value.self)", default: nil)
                #expect(defaults[key] == nil)
                defaults[key] = value
                #expect(defaults[key] == value)
                defaults[key] = nil
                #expect(defaults[key] == nil && defaults.object(forKey: key.name) == nil)
            }
            check(true)
            check(1)
            check(1 as Int64)
            check(1 as UInt8)
            check(1.5)
            check("text")
            check(Data([1]))
            check(Date(timeIntervalSinceReferenceDate: 1))
            check(try #require(URL(string: "https://example.org/a")))
            check(["a"])
            check(["a": 1])
            check(Point())
            check(Side.left)
        }
    }

    @Test func `a domain that is replaced before the service is there has nothing else when it is`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            _ = try await desk.other().apply([("old", .integer(1)), ("size", .integer(2))])
            desk.device.kill()
            let defaults = desk.settings()
            defaults.set(0, forKey: "before")
            defaults.setPersistentDomain(["size": 14], forName: editor)
            defaults.set(1, forKey: "after")
            #expect(defaults.integer(forKey: "size") == 14 && defaults.object(forKey: "before") == nil)
            try await desk.device.restart()
            try await desk.settle(defaults)
            #expect(try await desk.other().snapshot().values == ["size": .integer(14), "after": .integer(1)])
            #expect(defaults.persistentDomain(forName: editor)?.count == 2)
        }
    }

    @Test func `a write that nobody takes can be given up waiting for, and is made once there is a service`()
        async throws
    {
        try await DefaultsDesk.with(started: false) { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            let size = UserDefaults.Key<Int>("size", default: 12)
            let waiting = Task { try await defaults.set(14, for: size) }
            try await eventually("it is set here") { defaults[size] == 14 }
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await waiting.value }
            try await desk.device.start()
            try await eventually("it is set") { (try? await desk.other().value("size")) == .integer(14) }
        }
    }

    @Test func `where others follow as many domains as a user may, settings are read all the same`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            try await desk.other().set("size", .integer(14))
            let others = try await BusClient(desk.bus)
            for number in 0..<1024 { try await others.domain("org.example.D\(number)").subscribe() }
            let defaults = desk.settings()
            #expect(defaults.integer(forKey: "size") == 14)
            defaults.set(15, forKey: "size")
            try await desk.settle(defaults)
            #expect(try await desk.other().value("size") == .integer(15))
            // Once the others have gone, the library follows within half a minute, and takes what it has missed.
            try await desk.other().set("size", .integer(16))
            await others.connection.close()
            try await eventually("the missed change arrives") { defaults.integer(forKey: "size") == 16 }
            try await desk.other().set("size", .integer(17))
            try await eventually("changes are seen again") { defaults.integer(forKey: "size") == 17 }
        }
    }

    /// Stores a setting when it goes.
    private final class Farewell: Sendable {
        private let defaults: UserDefaults

        init(_ defaults: UserDefaults) { self.defaults = defaults }

        deinit { defaults.set("gone", forKey: "farewell") }
    }

    @Test func `what only an observer's closure holds may set settings when it goes with the observation`() async throws
    {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            var farewell: Farewell? = Farewell(defaults)
            let token = defaults.observe("size") { [farewell] _, _ in withExtendedLifetime(farewell) {} }
            farewell = nil
            #expect(defaults.object(forKey: "farewell") == nil)
            token.invalidate()
            #expect(defaults.string(forKey: "farewell") == "gone")
        }
    }

    @Test func `a suite that is added while another thread waits for the settings is waited for as well`() async throws
    {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            for number in 0..<5 {
                let suite = "org.example.Suite\(number)"
                try await desk.other(suite).set("only here", .integer(1))
                let defaults = desk.settings("org.example.App\(number)")
                desk.device.signal(SIGSTOP)
                let waiting = Task.detached { defaults.integer(forKey: "size") }
                try await Task.sleep(for: .milliseconds(50))
                defaults.addSuite(named: suite)
                desk.device.signal(SIGCONT)
                _ = await waiting.value
                #expect(defaults.integer(forKey: "only here") == 1)
            }
        }
    }

    @Test func `suites that threads add at once are all searched`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            for number in 0..<20 { try await desk.other("suite \(number)").set("key \(number)", .integer(1)) }
            await withTaskGroup { group in
                for number in 0..<20 { group.addTask { defaults.addSuite(named: "suite \(number)") } }
            }
            #expect((0..<20).allSatisfy { defaults.integer(forKey: "key \($0)") == 1 })
        }
    }

    @Test func `key-value coding reads and writes settings`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            defaults.setValue(14, forKey: "size")
            #expect(defaults.value(forKey: "size") as? Int == 14 && defaults.integer(forKey: "size") == 14)
            defaults.setValue(nil, forKey: "size")
            #expect(defaults.value(forKey: "size") == nil)
        }
    }

    @Test func `a property has its first value where something of another kind is stored`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            let all = Stored(defaults)
            for key in ["size", "on", "scale", "level", "maybe", "name", "data", "date", "url"] {
                defaults.set(["a", "b"], forKey: key)
            }
            #expect(all.size == 12 && !all.isOn && all.scale == 1 && all.level == .low && all.maybe == nil)
            #expect(all.name == "" && all.data.isEmpty && all.date == .distantPast && all.url.path == "/tmp")
            defaults.set("14", forKey: "size")
            #expect(all.size == 14)
        }
    }

    @Test func `a loop over a key's values has the present one first, and then the newest`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            let size = UserDefaults.Key<Int>("size", default: 12)
            var values = defaults.values(of: size).makeAsyncIterator()
            #expect(await values.next() == 12)
            defaults[size] += 1
            #expect(await values.next() == 13)
            try await defaults.set(14, for: size)
            #expect(await values.next() == 14)
            #expect(try await desk.other().value("size") == .integer(14))
        }
    }

    @Test func `a write that would make the domain too large is taken back, and told`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            let postings = Postings(UserDefaults.sizeLimitExceededNotification, nil)
            let mebibyte = Data(repeating: 1, count: 1 << 20)
            for index in 0..<4 { defaults.set(mebibyte, forKey: "\(index)") }
            try await desk.settle(defaults)
            defaults.set(1, forKey: "one more")
            try await eventually("it is taken back") { defaults.object(forKey: "one more") == nil }
            try await eventually("it is told") { postings.count == 1 }
            await #expect(throws: (any Error).self) { try await defaults.set(1, for: .init("again", default: 0)) }
            defaults.removeObject(forKey: "0")
            defaults.set(1, forKey: "one more")
            try await desk.settle(defaults)
            #expect(defaults.integer(forKey: "one more") == 1)
            let count = postings.count
            defaults.set(Data(count: (1 << 20) + 1), forKey: "huge")
            try await eventually("it is told of a value that is too large") { postings.count == count + 1 }
            #expect(defaults.object(forKey: "huge") == nil)
        }
    }

    @Test func `one key too many among many at once is told of once`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            let postings = Postings(UserDefaults.sizeLimitExceededNotification, nil)
            let mebibyte = Data(repeating: 1, count: 1 << 20)
            for index in 0..<3 { defaults.set(mebibyte, forKey: "\(index)") }
            // With it, the large one doesn't fit, whichever of the writes the service gets first.
            defaults.set(0, forKey: "small")
            try await desk.settle(defaults)
            for index in 0..<20 { defaults.set(index, forKey: "small \(index)") }
            defaults.set(mebibyte, forKey: "large")
            for index in 20..<40 { defaults.set(index, forKey: "small \(index)") }
            try await eventually("it is taken back") { defaults.object(forKey: "large") == nil }
            try await eventually("the others are there") {
                try await desk.other().snapshot().values.count == 44
            }
            try await eventually("it is told") { postings.count > 0 }
            #expect(postings.count == 1)
        }
    }

    /// Only root may use other users' settings.
    @Test(.enabled(if: geteuid() == 0))
    func `root reads, writes and follows another person's settings, and their own stay apart`() async throws {
        try await DefaultsDesk.with(users: true) { (desk: DefaultsDesk) async throws in
            let theirs = try await BusClient(desk.bus, as: 65534).domain(editor)
            try await theirs.set("size", .integer(1))
            desk.settings().set(9, forKey: "size")
            let name = try #require(getpwuid(65534)).pointee.pw_name
            let person = String(cString: try #require(name))
            let defaults = try #require(UserDefaults(user: person, domain: editor, bus: desk.bus.address))
            #expect(defaults.integer(forKey: "size") == 1)
            defaults.set(2, forKey: "size")
            try await desk.settle(defaults)
            #expect(try await theirs.value("size") == .integer(2) && defaults.persistentDomainNames().count == 1)
            try await theirs.set("size", .integer(3))
            try await eventually("root is told") { defaults.integer(forKey: "size") == 3 }
            #expect(desk.settings().integer(forKey: "size") == 9)
            #expect(UserDefaults(user: "no such person", domain: editor, bus: desk.bus.address) == nil)
        }
    }

    @Test func `a volatile domain that is set to what it is posts nothing`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            let postings = Postings(UserDefaults.didChangeNotification, defaults)
            for name in ["mine", UserDefaults.argumentDomain] {
                for value in [1, 1, 2] { defaults.setVolatileDomain(["a": value], forName: name) }
            }
            #expect(postings.count == 4)
        }
    }

    @Test func `a domain too many is refused for good, and told`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let others = try await BusClient(desk.bus)
            for number in 0..<1024 { try await others.domain("other \(number)").set("a", .integer(1)) }
            let defaults = desk.settings()
            await #expect(throws: (any Error).self) { try await defaults.set(1, for: .init("size", default: 0)) }
            defaults.set(2, forKey: "size")
            try await eventually("it is taken back") { defaults.object(forKey: "size") == nil && !defaults.isUnsettled }
            try await others.defaults.remove("other 7")
            defaults.set(3, forKey: "size")
            try await desk.settle(defaults)
            #expect(defaults.integer(forKey: "size") == 3)
        }
    }

    @Test func `what is set while the service is away arrives when it comes back`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            defaults.set(1, forKey: "a")
            try await desk.settle(defaults)
            desk.device.kill()
            defaults.set(2, forKey: "a")
            defaults.set(3, forKey: "b")
            #expect(defaults.integer(forKey: "a") == 2)
            try await desk.device.start()
            let other = try await desk.other()
            try await eventually("both arrive") {
                try await other.snapshot().values == ["a": .integer(2), "b": .integer(3)]
            }
        }
    }

    @Test func `a hundred threads write and read without a mistake`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            await withTaskGroup { group in
                for number in 0..<100 {
                    group.addTask {
                        await onThread {
                            for index in 0..<50 {
                                defaults.set(index, forKey: "key \(number)")
                                #expect(defaults.integer(forKey: "key \(number)") == index)
                                _ = defaults.dictionaryRepresentation().count
                            }
                        }
                    }
                }
            }
            try await desk.settle(defaults)
            let values = try await desk.other().snapshot().values
            #expect(values.count == 100 && values.values.allSatisfy { $0 == .integer(49) })
        }
    }

    @Test func `a package that takes Foundation's class gets these settings`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            func third(_ theirs: Foundation.UserDefaults) -> String? {
                theirs.set("theirs", forKey: "key")
                theirs.set(URL(fileURLWithPath: "/tmp/a"), forKey: "url")
                return theirs.string(forKey: "key")
            }
            #expect(third(defaults.foundation) == "theirs")
            #expect(defaults.string(forKey: "key") == "theirs" && defaults.string(forKey: "url") == "/tmp/a")
            #expect(defaults.foundation.dictionaryRepresentation().count == defaults.dictionaryRepresentation().count)
        }
    }

    @Test(arguments: [
        "NSGlobalDomain", "NSArgumentDomain", "NSRegistrationDomain", ".", "..", "a/b", "", "a\0b",
        String(repeating: "a", count: 256),
    ])
    func `a suite of a name that can be none is nil`(_ name: String) {
        #expect(UserDefaults(suiteName: name) == nil)
    }

    @Test func `the names of domains and notifications are Apple's`() {
        #expect(UserDefaults.argumentDomain == "NSArgumentDomain" && UserDefaults.globalDomain == "NSGlobalDomain")
        #expect(UserDefaults.registrationDomain == "NSRegistrationDomain")
        #expect(UserDefaults.didChangeNotification.rawValue == "NSUserDefaultsDidChangeNotification")
        #expect(
            UserDefaults.sizeLimitExceededNotification.rawValue == "com.apple.CFPreferences.byteCountLimitReached")
        #expect(
            UserDefaults.noCloudAccountNotification.rawValue == "NSUbiquitousUserDefaultsNoCloudAccountNotification")
        #expect(
            UserDefaults.didChangeCloudAccountsNotification.rawValue
                == "NSUbiquitousUserDefaultsDidChangeAccountsNotification")
        #expect(
            UserDefaults.completedInitialCloudSyncNotification.rawValue
                == "NSUbiquitousUserDefaultsCompletedInitialSyncNotification")
    }

    @Test func `the dictionary has what object has, of every layer, each key once`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            try await desk.other("NSGlobalDomain").apply([("global", .integer(1)), ("own", .integer(1))])
            try await desk.other("suite").set("suite", .string("s"))
            let defaults = desk.settings()
            defaults.addSuite(named: "suite")
            defaults.register(defaults: ["registered": [1, 2], "own": 0])
            defaults.setVolatileDomain(["argument": "a"], forName: UserDefaults.argumentDomain)
            defaults.set(2, forKey: "own")
            let everything = defaults.dictionaryRepresentation()
            let expected = ["AppleLanguages", "AppleLocale", "argument", "global", "own", "registered", "suite"]
            #expect(everything.keys.sorted() == expected)
            for (key, value) in everything { #expect("\(value)" == defaults.object(forKey: key).map { "\($0)" }) }
            #expect(everything["own"] as? Int == 2)
        }
    }

    @Test func `who observes messages is told of the same as who observes notifications`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            let told = Atomic<Int>(0)
            let center = NotificationCenter.default
            let token = center.addObserver(of: defaults, for: .didChange) { (_: UserDefaults.DidChangeMessage) in
                told.add(1, ordering: .relaxed)
            }
            let postings = Postings(UserDefaults.didChangeNotification, defaults)
            defaults.set(1, forKey: "key")
            try await eventually("the message comes") { told.load(ordering: .relaxed) == 1 }
            #expect(postings.count == 1)
            center.removeObserver(token)
            let exceeded = Atomic<Int>(0)
            let other = center.addObserver(of: UserDefaults.self, for: .sizeLimitExceeded) {
                (_: UserDefaults.SizeLimitExceededMessage) in
                exceeded.add(1, ordering: .relaxed)
            }
            let mebibyte = Data(repeating: 1, count: 1 << 20)
            for index in 0..<5 { defaults.set(mebibyte, forKey: "\(index)") }
            try await eventually("the other message comes") { exceeded.load(ordering: .relaxed) > 0 }
            center.removeObserver(other)
            #expect(UserDefaults.SizeLimitExceededMessage.name == UserDefaults.sizeLimitExceededNotification)
        }
    }

    @Test func `what a lock names is read from what an administrator recommends, whatever the person set`()
        async throws
    {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            defaults.set(10, forKey: "size.text")
            let file = """
                <plist version="1.0"><dict><key>Locked</key><dict><key>\(editor)</key><array><string>size.*</string>
                </array></dict><key>Recommended</key><dict><key>\(editor)</key><dict><key>size.text</key>
                <integer>9</integer></dict></dict></dict></plist>
                """
            let path = desk.device.managedDirectory + "/10-size.plist"
            try file.write(toFile: path, atomically: true, encoding: .utf8)
            try await eventually("it is in force") { defaults.integer(forKey: "size.text") == 9 }
            #expect(defaults.objectIsForced(forKey: "size.text") && defaults.objectIsForced(forKey: "size.more"))
            #expect(!defaults.objectIsForced(forKey: "other"))
            #expect(desk.settings("another").objectIsForced(forKey: "size.text", inDomain: editor))
        }
    }

    @Test func `the names of persistent domains are those that have values, in this process or in others`()
        async throws
    {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            #expect(defaults.persistentDomainNames().isEmpty)
            try await desk.other("another").set("a", .integer(1))
            defaults.set(1, forKey: "a")
            try await eventually("both are named") {
                defaults.persistentDomainNames() as? [String] == ["another", editor]
            }
        }
    }

    @Test func `what was stored with Foundation's class is taken over, and never over what is there`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let path = desk.device.directory.path + "/foundation.plist"
            let theirs: [String: Any] = ["size": 14, "name": "Ada", "list": ["a", 1.5]]
            try PropertyListSerialization.data(fromPropertyList: theirs, format: .xml, options: 0)
                .write(to: URL(filePath: path))
            let defaults = desk.settings()
            defaults.set(20, forKey: "size")
            #expect(defaults.importFoundationFile(path) == ["list", "name"])
            #expect(defaults.integer(forKey: "size") == 20 && defaults.string(forKey: "name") == "Ada")
            #expect(defaults.importFoundationFile(path).isEmpty)
            #expect(defaults.importFoundationFile(path + ".none").isEmpty)
            try Data("torn".utf8).write(to: URL(filePath: path))
            #expect(defaults.importFoundationFile(path).isEmpty)
        }
    }

    @Test func `what is set while the service is restarted again and again arrives`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            for round in 0..<4 {
                for index in 0..<25 { defaults.set(round, forKey: "\(round) \(index)") }
                desk.device.kill()
                defaults.set(round, forKey: "last")
                try await desk.device.start()
            }
            try await desk.settle(defaults)
            let values = try await desk.other().snapshot().values
            #expect(values.count == 101 && values["last"] == .integer(3))
        }
    }

    @Test func `what is set after the bus has gone is kept for the next process`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            defaults.set(1, forKey: "a")
            try await desk.settle(defaults)
            desk.bus.end()
            defaults.set(2, forKey: "a")
            #expect(defaults.integer(forKey: "a") == 2)
            let file = OutboxFile(domain: Text(editor), directory: desk.outboxes)
            try await eventually("it is kept") {
                defaults.synchronize() && file.read()?.writes.map(\.value) == [.integer(2)]
            }
        }
    }

    @Test func `a storage property reads, writes, is reset, and is tracked, in every type`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            let all = Stored(defaults)
            let tracked = Atomic<Int>(0)
            withObservationTracking {
                _ = all.size
            } onChange: {
                tracked.add(1, ordering: .relaxed)
            }
            #expect(all.size == 12 && all.mode == .light && all.note == nil && all.url.path == "/tmp")
            (all.size, all.isOn, all.scale, all.name) = (13, true, 1.5, "n")
            (all.url, all.data, all.date) = (URL(filePath: "/a"), Data([1]), Date(timeIntervalSinceReferenceDate: 1))
            (all.mode, all.level, all.note, all.maybe) = (.dark, .high, "x", .high)
            #expect(defaults.integer(forKey: "size") == 13 && all.size == 13 && all.isOn && all.scale == 1.5)
            #expect(
                all.name == "n" && all.url.path == "/a" && all.data == Data([1])
                    && all.date.timeIntervalSinceReferenceDate == 1)
            #expect(all.mode == .dark && defaults.string(forKey: "mode") == "dark" && all.level == .high)
            #expect(defaults.integer(forKey: "level") == 2 && all.note == "x" && all.maybe == .high)
            all.note = nil
            #expect(defaults.object(forKey: "note") == nil)
            try await eventually("tracking is told") { tracked.load(ordering: .relaxed) == 1 }
            all.$size.reset()
            #expect(all.size == 12 && !all.$size.isForced)
            var values = all.$size.values.makeAsyncIterator()
            #expect(await values.next() == 12)
            defaults.set(40, forKey: "size")
            #expect(await values.next() == 40)
        }
    }

    @Test func `storage properties of objects that are made again and again leave none of them behind, and are told`()
        async throws
    {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let tracked = Atomic<Int>(0)
            let gone = (1...100).map { _ in
                let defaults = desk.settings("org.example.Shared")
                let all = Stored(defaults)
                withObservationTracking {
                    _ = all.size
                } onChange: {
                    tracked.add(1, ordering: .relaxed)
                }
                return Gone(defaults)
            }
            await DefaultsDesk.drain()
            #expect(gone.allSatisfy { $0.defaults == nil })
            // The first object's search continues for all.
            #expect(gone.dropFirst().allSatisfy { $0.box == nil })
            try await desk.other("org.example.Shared").set("size", .integer(13))
            try await eventually("all are told") { tracked.load(ordering: .relaxed) == 100 }
            #expect(Stored(desk.settings("org.example.Shared")).size == 13)
        }
    }

    @Test func `Apple's call of observation tells of a property that reads settings, until it is invalidated`()
        async throws
    {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            let seen = Mutex<[Int?]>([])
            let token = defaults.observe(\.testedSize, options: [.initial, .old, .new]) { _, change in
                seen.withLock { $0 += [change.oldValue, change.newValue] }
            }
            defaults.set(1, forKey: "tested size")
            defaults.set(1, forKey: "unrelated")
            try await eventually("both are told") { seen.withLock { $0 } == [nil, 0, 0, 1] }
            token.invalidate()
            defaults.set(2, forKey: "tested size")
            await DefaultsDesk.drain()
            #expect(seen.withLock { $0.count } == 4)
        }
    }
}

extension UserDefaults {
    var testedSize: Int { integer(forKey: "tested size") }
    var testedProfile: [String: Any]? { dictionary(forKey: "tested profile") }
    var testedSizeThatIsSetWhenRead: Int {
        defer { set(1, forKey: "tested size") }
        return testedSize
    }
}

/// Weak references, to see what was released.
private struct Gone {
    weak var defaults: UserDefaults?
    weak var box: SearchBox?

    init(_ defaults: UserDefaults) { (self.defaults, box) = (defaults, defaults.box) }
}

/// A property of each kind.
private struct Stored {
    enum Mode: String { case light, dark }
    enum Level: Int { case low = 1, high }

    @AppStorage var size: Int
    @AppStorage var isOn: Bool
    @AppStorage var scale: Double
    @AppStorage var name: String
    @AppStorage var url: URL
    @AppStorage var data: Data
    @AppStorage var date: Date
    @AppStorage var mode: Mode
    @AppStorage var level: Level
    @AppStorage var note: String?
    @AppStorage var maybe: Level?

    init(_ store: UserDefaults) {
        _size = AppStorage(wrappedValue: 12, "size", store: store)
        _isOn = AppStorage(wrappedValue: false, "on", store: store)
        _scale = AppStorage(wrappedValue: 1, "scale", store: store)
        _name = AppStorage(wrappedValue: "", "name", store: store)
        _url = AppStorage(wrappedValue: URL(filePath: "/tmp"), "url", store: store)
        _data = AppStorage(wrappedValue: Data(), "data", store: store)
        _date = AppStorage(wrappedValue: .distantPast, "date", store: store)
        _mode = AppStorage(wrappedValue: .light, "mode", store: store)
        _level = AppStorage(wrappedValue: .low, "level", store: store)
        _note = AppStorage("note", store: store)
        _maybe = AppStorage("maybe", store: store)
    }
}

/// Runs `body` on a new thread.
private func onThread(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
        Thread {
            body()
            continuation.resume()
        }.start()
    }
}
