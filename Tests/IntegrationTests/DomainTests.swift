// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import ServerTesting
import StoreBus
import Testing
import UbiquitousStoreTesting

/// Defaults domains on the bus.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct DomainTests {
    private let app = "org.example.Editor"
    private let global = "NSGlobalDomain"

    @Test func `one call opens a program's own domain, the global one and suites, in their order`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            try await client.domain(app).set("size", .integer(14))
            try await client.domain(app, isHost: true).set("screen", .real(2))
            try await client.domain(global).set("dark", .boolean(true))
            let opened = try await client.defaults.open(["", global, "suite"], program: "/usr/bin/" + app)
            #expect(opened.map { $0["domain"] } == [app, global, "suite"].map { .string(Text($0)) })
            #expect(opened[0]["values"] == .dictionary(["size": .integer(14)]))
            #expect(opened[0]["host-values"] == .dictionary(["screen": .real(2)]))
            #expect(opened[1]["values"] == .dictionary(["dark": .boolean(true)]))
            #expect(opened[2]["values"] == .dictionary([:]) && opened[2]["writable"] == .boolean(true))
            #expect(opened[0]["path"] == .string(Text(try client.domain(app).path)))
            #expect(try await client.defaults.list() == [global, app].sorted())
        }
    }

    @Test func `domains whose names have other bytes are others, though Swift takes the names for equal`() async throws
    {
        let names = ["\u{301}caf\u{e9}", "\u{301}cafe\u{301}"]
        try await withMachine { machine in
            let client = try machine.client()
            for (index, name) in names.enumerated() {
                try await client.domain(name).set("key", .integer(Int64(index)))
            }
            for (index, name) in names.enumerated() {
                #expect(try await client.domain(name).value("key") == .integer(Int64(index)))
            }
            try await machine.device.restart()
            let again = try machine.client()
            #expect(try await again.defaults.list().map { Array($0.utf8) } == names.reversed().map { Array($0.utf8) })
            #expect(machine.device.exit == nil)
        }
    }

    @Test func `the manifest that names a program says which domain is its own, and which store its keys roam in`()
        async throws
    {
        try await withMachine {
            $0.manifests = [ManifestText("org.example.Store", application: app, executables: ["/usr/bin/edit"])]
        } _: { machine in
            let client = try machine.client()
            let opened = try await client.defaults.open([""], program: "/usr/bin/edit")
            #expect(opened[0]["domain"] == .string(Text(app)) && opened[0]["store"] == .string("org.example.Store"))
            #expect(try await client.defaults.open([""], program: "/usr/bin/vi")[0]["domain"] == .string("vi"))
        }
    }

    @Test func `who opened with a subscription is told of both layers, and the writer is not`() async throws {
        try await withMachine { machine in
            let (reader, writer) = (try machine.client(), try machine.client())
            let told = try reader.domain(app)
            try await told.listen()
            _ = try await reader.defaults.open([app], subscribing: true)
            let own = try writer.domain(app)
            try await own.subscribe()
            let generation = try await own.set("size", .integer(1))
            let signal = try await told.signal("the domain's") { $0.keys == ["size"] }
            #expect(signal.reason == 16 && signal.generation == generation && signal.info.isEmpty)
            try await writer.domain(app, isHost: true).set("screen", .integer(1))
            let hosts = try await told.signal("this host's") { $0.keys == ["screen"] }
            #expect(hosts.info == ["host": .boolean(true)])
            _ = try await own.snapshot()
            #expect(own.received.isEmpty)
        }
    }

    @Test func `who could not open all domains is subscribed to none`() async throws {
        try await withMachine { machine in
            let (reader, writer) = (try machine.client(), try machine.client())
            let (told, other) = (try reader.domain(app), try reader.domain("org.example.Other"))
            for domain in [told, other] { try await domain.listen() }
            #expect(await errorName { _ = try await reader.defaults.open([app, "a/b"], subscribing: true) } != "")
            _ = try await reader.defaults.open(["org.example.Other"], subscribing: true)
            try await writer.domain(app).set("size", .integer(1))
            try await writer.domain("org.example.Other").set("size", .integer(1))
            _ = try await other.signal("the other's") { $0.keys == ["size"] }
            #expect(told.received.isEmpty)
        }
    }

    @Test func `a subscription at a layer's own path is told from there, and ends there`() async throws {
        try await withMachine { machine in
            let (reader, writer) = (try machine.client(), try machine.client())
            let (domain, host) = (try reader.domain(app), try reader.domain(app, isHost: true))
            try await domain.subscribe()
            try await host.subscribe()
            let screen = try writer.domain(app, isHost: true)
            try await screen.set("screen", .integer(1))
            _ = try await domain.signal("at the domain's path") { $0.keys == ["screen"] }
            _ = try await host.signal("at the layer's path") { $0.keys == ["screen"] }
            try await reader.call(domain.path, BusNames.domainInterface, "Unsubscribe")
            try await screen.set("screen", .integer(2))
            try await eventually("the layer's path tells of it") { host.received.count == 2 }
            _ = try await domain.snapshot()
            #expect(domain.received.count == 1)
        }
    }

    @Test func `apply replaces a layer at once, and holds to a generation`() async throws {
        try await withMachine { machine in
            let domain = try machine.client().domain(app)
            let generation = try await domain.apply([("a", .integer(1)), ("b", .integer(2))])
            #expect(await errorName { try await domain.apply([("a", .integer(9))], ifGeneration: 1) } == "Conflict")
            let next = try await domain.apply([("b", .integer(3))], replacing: true, ifGeneration: generation)
            let snapshot = try await domain.snapshot(since: generation)
            #expect(snapshot.values == ["b": .integer(3)] && snapshot.removed == ["a"] && next == generation + 1)
        }
    }

    @Test func `what a layer can't hold is refused, and nothing of the call is stored`() async throws {
        try await withMachine { machine in
            let domain = try machine.client().domain(app)
            let long = String(repeating: "k", count: 513)
            #expect(await errorName { try await domain.set(long, .integer(1)) } == "KeyTooLong")
            #expect(await errorName { try await domain.set("", .integer(1)) } == "InvalidKey")
            try await domain.set(String(long.dropLast()), .integer(1))
            let mebibyte = Value.data([UInt8](repeating: 1, count: 1 << 20))
            for index in 0..<3 { try await domain.set("\(index)", mebibyte) }
            #expect(await errorName { try await domain.set("3", mebibyte) } == "QuotaExceeded")
            let flags = Value.array(Array(repeating: .boolean(true), count: 1_000_000))
            #expect(await errorName { try await domain.apply([("0", flags), ("1", flags)]) } == "QuotaExceeded")
            #expect(try await domain.snapshot().values.count == 4)
        }
    }

    @Test func `a refusal says which limit it was, what there is and what was needed`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            let domain = try client.domain(app)
            let mebibyte = Value.data([UInt8](repeating: 1, count: 1 << 20))
            try await domain.apply((0..<4).map { ("\($0)", mebibyte) })
            let full = await failure { try await domain.set("4", .boolean(true)) }?.message ?? ""
            for word in ["4194304", "4194305"] { #expect(full.contains(word), "\(full)") }
            let long = String(repeating: "k", count: 513)
            let key = await failure { try await domain.set(long, mebibyte) }?.message ?? ""
            #expect(key.contains("513") && key.contains("512"), "\(key)")
            let name = await failure { _ = try await client.defaults.open(["a/b"]) }?.message ?? ""
            #expect(name.contains("slash; leave it out"), "\(name)")
            try await domain.set("0", .boolean(true))
            try await domain.set("4", .boolean(true))
        }
    }

    @Test func `a late write doesn't replace what changed since, and is in the key's history`() async throws {
        try await withMachine { machine in
            let domain = try machine.client().domain(app)
            let base = try await domain.apply([("a", .integer(1)), ("b", .integer(1))])
            try await domain.set("a", .integer(2))
            let late: [(key: String, value: Value)] = [("a", .integer(3)), ("b", .integer(3)), ("c", .integer(3))]
            let generation = try await domain.apply(late, unlessChangedSince: base)
            #expect(try await domain.snapshot().values == ["a": .integer(2), "b": .integer(3), "c": .integer(3)])
            #expect(try await domain.snapshot(since: base + 1).values == ["b": .integer(3), "c": .integer(3)])
            let lost = try await domain.history("a")[0]
            #expect(lost["value"] == .integer(3) && lost["why"] == .string("merge"))
            try await domain.apply(removing: ["a"])
            try await domain.apply([("a", .integer(4))], unlessChangedSince: generation)
            #expect(await errorName { _ = try await domain.value("a") } == "NoSuchKey")
            #expect(try await domain.history("a")[0]["value"] == .integer(4))
            let both = await errorName {
                try await domain.apply(late, replacing: true, unlessChangedSince: generation)
            }
            #expect(both == "InvalidArgs")
        }
    }

    @Test func `a manifest without a store says which domain is a program's own, and nothing of it roams`()
        async throws
    {
        try await withMachine {
            $0.manifests = [ManifestText(nil, application: app, executables: ["/usr/bin/edit"])]
        } _: { machine in
            let opened = try await machine.client().defaults.open([""], program: "/usr/bin/edit")[0]
            #expect(opened["domain"] == .string(Text(app)) && opened["store"] == .string(""))
        }
    }

    @Test func `a manifest that an app has registered names its program, too`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            let text = ManifestText("org.example.Home", application: app, executables: ["/home/ada/edit"])
            try await client.manager("RegisterManifest") {
                try $0.append(bytes: Array(text.xml.utf8))
                try $0.appendDictionary {}
            }
            let opened = try await client.defaults.open([""], program: "/home/ada/edit")[0]
            #expect(opened["domain"] == .string(Text(app)) && opened["store"] == .string("org.example.Home"))
        }
    }

    @Test func `the 16385th key and the 1025th domain are refused`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            let domain = try client.domain(app)
            try await domain.apply((0..<16_384).map { ("\($0)", .boolean(true)) })
            #expect(await errorName { try await domain.set("one more", .boolean(true)) } == "QuotaExceeded")
            for index in 1..<1024 { try await client.domain("d\(index)").set("k", .boolean(true)) }
            #expect(await errorName { try await client.domain("more").set("k", .boolean(true)) } == "LimitsExceeded")
            try await client.defaults.remove("d1", 0x1)
            try await client.domain("more").set("k", .boolean(true))
            #expect(try await client.defaults.list().count == 1024)
        }
    }

    @Test(arguments: ["..", ".", "a/b", String(repeating: "d", count: 256), "a\u{1}b"])
    func `a name that can't be a domain's is refused`(_ name: String) async throws {
        try await withMachine { machine in
            let client = try machine.client()
            #expect(await errorName { _ = try await client.defaults.open([name]) } == "InvalidArgs")
            let path = try ObjectPath.encode(prefix: BusNames.defaultsPath(uid: client.uid), label: name)
            #expect(
                await errorName { try await client.call(path, BusNames.domainInterface, "Unsubscribe") }
                    == "UnknownObject")
            #expect(await errorName { try await client.defaults.remove(name) } == "InvalidArgs")
        }
    }

    @Test func `domains outlive the service, and signing in or out does nothing to them`() async throws {
        let folder = MemoryFolder()
        try await withMachine { machine in
            let client = try machine.client()
            try await client.domain(app).set("size", .integer(14))
            machine.device.kill()
            try await machine.device.start()
            let domain = try client.domain(app)
            #expect(try await domain.value("size") == .integer(14))
            let server = try ScriptedServer { folder.answer(to: $0) }
            for keepsValues in [false, true] {
                try await client.account.join("webdav://127.0.0.1:\(server.port)/dav")
                #expect(try await domain.value("size") == .integer(14))
                try await client.account.signOut(keepingValues: keepsValues)
                #expect(try await domain.value("size") == .integer(14))
            }
            // A domain isn't a store.
            #expect(await errorName { _ = try await client.store("!d/" + app).everything() } == "UnknownObject")
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `another user's domains do not exist, and root's look makes nobody's data`() async throws {
        try await withMachine { machine in
            let (one, other) = (try machine.client(as: Users.nobody), try machine.client(as: Users.daemon))
            try await one.domain(app).set("size", .string(Text(secret)))
            let path = try one.domain(app).path
            for member in ["GetSnapshot", "Apply"] {
                #expect(
                    await errorName { try await other.call(path, BusNames.domainInterface, member) }
                        == "UnknownObject")
            }
            #expect(await errorName { _ = try await other.introspect(one.defaults.path) } == "UnknownObject")
            #expect(try await other.defaults.open([app])[0]["values"] == .dictionary([:]))
            let root = try machine.client(as: 0)
            #expect(
                try await root.call(path, BusNames.domainInterface, "GetValue") {
                    try $0.append("size")
                } decode: {
                    try $0.readValue()
                } == .string(Text(secret)))
            let nobodys = try BusNames.domainPath(uid: 4_000_000, domain: app)
            #expect(
                await errorName { try await root.call(nobodys, BusNames.domainInterface, "Unsubscribe") }
                    == "UnknownObject")
        }
    }

    @Test func `a domain that does not fit into an answer is left to be read by itself`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            // With their metadata, four of these domains are a little less than 16 MiB.
            let mebibyte = Value.data([UInt8](repeating: 1, count: (1 << 20) - 8192))
            let names = (0..<5).map { "d\($0)" }
            for name in names {
                for index in 0..<4 where name != "d4" || index < 2 {
                    try await client.domain(name).set("\(index)", mebibyte)
                }
            }
            let opened = try await client.defaults.open(names)
            #expect(opened.map { $0["omitted"] == .boolean(true) } == [false, false, false, false, true])
            #expect(try await client.domain("d4").snapshot().values.count == 2)
        }
    }
}

/// Settings that an administrator manages.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct ManagedDomainTests {
    private let app = "org.example.Editor"

    private func file(_ part: String, _ key: String, _ value: String, _ more: String = "") -> String {
        """
        <plist version="1.0"><dict><key>\(part)</key><dict><key>\(app)</key>
        <dict><key>\(key)</key>\(value)</dict></dict>\(more)</dict></plist>
        """
    }

    private func install(_ text: String, _ name: String, on machine: Machine, mode: mode_t = 0o644) throws {
        let path = machine.device.managedDirectory + "/" + name
        try text.write(toFile: path + ".new", atomically: false, encoding: .utf8)
        chmod(path + ".new", mode)
        rename(path + ".new", path)
    }

    private func forced(_ domain: DomainClient) async throws -> Value? { try await domain.managed()["forced"] }

    @Test func `a file that is put there is told with reason 32, and what it says is in force`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            let domain = try client.domain(app)
            try await domain.subscribe()
            try install(file("Forced", "size", "<integer>14</integer>"), "10-size.plist", on: machine)
            #expect(try await domain.signal("managed") { $0.reason == 32 }.keys == ["size"])
            let managed = try await domain.managed()
            #expect(managed["forced"] == .dictionary(["size": .integer(14)]))
            let path = machine.device.managedDirectory + "/10-size.plist"
            #expect(managed["sources"] == .dictionary(["size": .string(Text(path))]))
            #expect(try await client.defaults.list(0x1) == [app])
            #expect(try await client.defaults.list().isEmpty)
            unlink(path)
            try await eventually("it is told that the file is gone") {
                domain.received.count(where: { $0.reason == 32 }) == 2
            }
            #expect(try await forced(domain) == .dictionary([:]))
        }
    }

    @Test func `a file that becomes invalid stays in force as it was, and is named in the log`() async throws {
        try await withMachine { machine in
            let domain = try machine.client().domain(app)
            try await domain.subscribe()
            try install(file("Forced", "size", "<integer>14</integer>"), "10.plist", on: machine)
            _ = try await domain.signal("managed") { $0.reason == 32 }
            try install("<plist version=\"1.0\"><dict><key>Forced</dict>", "10.plist", on: machine)
            try await eventually("the log names the file") {
                machine.device.log.contains("10.plist are refused, and it stays in force as it was")
            }
            #expect(try await forced(domain) == .dictionary(["size": .integer(14)]))
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a directory that can't be read any more lifts nothing, and counts again as soon as it can`() async throws {
        try await withMachine { machine in
            let directory = machine.device.managedDirectory
            let domain = try machine.client().domain(app)
            try await domain.subscribe()
            try install(file("Forced", "size", "<integer>14</integer>"), "10.plist", on: machine)
            _ = try await domain.signal("managed") { $0.reason == 32 }
            chmod(directory, 0o700)
            try await eventually("the log names the directory") {
                machine.device.log.contains("The managed settings in \(directory) can't be read")
            }
            #expect(try await forced(domain) == .dictionary(["size": .integer(14)]))
            try install(file("Forced", "size", "<integer>15</integer>"), "20.plist", on: machine)
            chmod(directory, 0o755)
            try await eventually("what is there now is in force") {
                try await forced(domain) == .dictionary(["size": .integer(15)])
            }
            // Nothing but the mode of a file has changed.
            chmod(directory + "/20.plist", 0o666)
            try await eventually("the log says why a file is refused") {
                machine.device.log.contains("20.plist are refused, and it stays in force as it was")
            }
        }
    }

    @Test func `a broken file is named with its line, a wrong one with its key, and the others go on`() async throws {
        try await withMachine(started: false) { machine in
            try install(file("Forced", "size", "<integer>14</integer>"), "10-good.plist", on: machine)
            try install("<plist version=\"1.0\">\n<dict>\n<key>Forced</dict></plist>", "20-torn.plist", on: machine)
            try install(file("Enforced", "size", "<true/>"), "30-wrong.plist", on: machine)
            try await machine.device.start()
            #expect(try await forced(machine.client().domain(app)) == .dictionary(["size": .integer(14)]))
            let lines = machine.device.log.split(separator: "\n")
            #expect(lines.contains { $0.contains("20-torn.plist") && $0.contains("line 3") })
            #expect(lines.contains { $0.contains("30-wrong.plist") && $0.contains("Enforced: this key is not known") })
        }
    }

    @Test func `links, FIFOs, large files and files that others may write are refused, and the others go on`()
        async throws
    {
        try await withMachine(started: false) { machine in
            let directory = machine.device.managedDirectory
            let good = file("Forced", "size", "<integer>14</integer>")
            try install(good, "good.plist", on: machine)
            try install(good, "writable.plist", on: machine, mode: 0o666)
            symlink(directory + "/good.plist", directory + "/link.plist")
            mkfifo(directory + "/fifo.plist", 0o644)
            try install(good + String(repeating: " ", count: 2 << 20), "large.plist", on: machine)
            try await machine.device.start()
            let domain = try machine.client().domain(app)
            #expect(try await forced(domain) == .dictionary(["size": .integer(14)]))
            for name in ["writable", "link", "fifo", "large"] {
                #expect(machine.device.log.contains("\(name).plist are refused, and it is left out"), "\(name)")
            }
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a file for users is for these only`() async throws {
        try await withMachine(started: false) { machine in
            let scope = "<key>Users</key><array><string>nobody</string></array>"
            try install(file("Forced", "size", "<integer>14</integer>", scope), "10.plist", on: machine)
            try await machine.device.start()
            let (one, other) = (try machine.client(as: Users.nobody), try machine.client(as: Users.daemon))
            #expect(try await forced(one.domain(app)) == .dictionary(["size": .integer(14)]))
            #expect(try await forced(other.domain(app)) == .dictionary([:]))
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a file for groups is for those whom the bus has in one`() async throws {
        try await withMachine { machine in
            let (one, other) = (try machine.client(as: Users.nobody), try machine.client(as: Users.daemon))
            let (domain, others) = (try one.domain(app), try other.domain(app))
            // The tests' threads keep root's groups, whichever user they are on the bus.
            let scope = "<key>Groups</key><array><string>root</string><string>no such group</string></array>"
            try await domain.subscribe()
            try install(file("Forced", "size", "<integer>14</integer>", scope), "10.plist", on: machine)
            _ = try await domain.signal("managed") { $0.reason == 32 }
            // Root is in no such group.
            let foreign = "<key>Groups</key><array><string>games</string></array>"
            try install(file("Forced", "color", "<integer>1</integer>", foreign), "20.plist", on: machine)
            try install(file("Forced", "width", "<integer>2</integer>", scope), "30.plist", on: machine)
            try await eventually("the files were read") {
                try await forced(domain) == .dictionary(["size": .integer(14), "width": .integer(2)])
            }
            _ = others
            let words = "name the group no such group, which is not known"
            #expect(machine.device.log.contains(words))
            let warnings = try await one.property(BusNames.managerPath, BusNames.managerInterface, "Warnings")
            guard case .array(let sentences) = warnings else { throw BusError.failed("no array") }
            #expect(sentences.count { "\($0)".contains(words) } == 1, "\(warnings)")
        }
    }

    @Test func `managed values nest as deep as values may, and come through in one answer`() async throws {
        try await withMachine(started: false) { machine in
            let deep =
                String(repeating: "<dict><key>k</key>", count: 16) + "<true/>" + String(repeating: "</dict>", count: 16)
            try install(file("Forced", "deep", deep), "10.plist", on: machine)
            try await machine.device.start()
            let opened = try await machine.client().defaults.open([app])
            guard case .dictionary(let managed)? = opened[0]["managed"],
                case .dictionary(let forced)? = managed["forced"]
            else { return #expect(Bool(false), "\(opened)") }
            #expect(forced["deep"]?.depth == 16)
        }
    }
}
