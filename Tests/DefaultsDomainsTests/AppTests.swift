// SPDX-License-Identifier: Apache-2.0

import DefaultsDomains
import Foundation
import PropertyList
import Testing
import UbiquitousStoreTesting

/// A program written as for Apple's systems, in its own process.
@Suite(.serialized, .timeLimit(.minutes(30)))
struct AppTests {
    @Test func `a refused key neither steers the terminal nor hides why it was refused`() async throws {
        try await DefaultsDesk.with { desk in
            _ = try await desk.run("write", "\u{1B}[2J" + String(repeating: "k", count: 5000), "x")
            #expect(desk.error.hasPrefix("UserDefaults: \"\u{FFFD}[2Jkkk"), "\(desk.error)")
            #expect(desk.error.contains("UTF-16 code units; shorten it to at most 512") && desk.error.utf8.count < 500)
        }
    }

    @Test func `where settings can't be kept, the reason is said`() async throws {
        try await DefaultsDesk.with(started: false) { (desk: DefaultsDesk) async throws in
            let place = desk.device.directory.path + "/file"
            try Data().write(to: URL(filePath: place))
            _ = try await desk.run("write", "name", "Ada", variables: ["XDG_STATE_HOME": place])
            let reason = "can't be kept in \(place)/ubiquitous-store/outbox: Not a directory."
            #expect(desk.error.contains(reason), "\(desk.error)")
        }
    }

    @Test func `a suite of a name that no domain can have is refused, and said once`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            _ = try await desk.run("add-suites", "..", "..", "a/b")
            let lines = desk.error.split(separator: "\n")
            #expect(
                lines.count == 2 && lines[0].hasPrefix("UserDefaults: \"..\" is not searched: a domain's name is 1"))
        }
    }

    @Test func `many settings that are refused for one reason share a line`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let others = try await BusClient(desk.bus)
            for number in 0..<1024 { try await others.domain("other \(number)").set("a", .integer(1)) }
            #expect(try await desk.run("write-many").exit == .code(0))
            var lines = desk.error.split(separator: "\n")
            // What wasn't refused in time was kept in the outbox, which the next processes deliver.
            repeat {
                _ = try await desk.run("read", "name")
                lines += desk.error.split(separator: "\n")
            } while lines.isEmpty
            #expect((1...2).contains(lines.count), "\(lines)")
            for line in lines { #expect(line.contains(" more keys ") && line.contains("1024 domains")) }
        }
    }

    @Test func `what a program sets is there when it has ended, without synchronize`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            #expect(try await desk.run("write", "name", "Ada").exit == .code(0), "\(desk.error)")
            #expect(try await desk.run("write-many").exit == .code(0))
            // On a busy machine the values may reach the service only when the next process starts.
            #expect(try await desk.run("read", "name", "registered").output == "Ada 1")
            let values = try await desk.other().snapshot().values
            #expect(values.count == 201 && values["name"] == .string("Ada"))
        }
    }

    @Test(arguments: [true, false])
    func `what the program's own handler of its end sets is there, too`(hasService: Bool) async throws {
        try await DefaultsDesk.with(started: hasService) { (desk: DefaultsDesk) async throws in
            #expect(try await desk.run("write-at-exit").exit == .code(0), "\(desk.error)")
            #expect(try await desk.run("read", "early", "late").output == "early late")
        }
    }

    @Test func `the class can be subclassed`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            #expect(try await desk.run("subclass").output == "[\"a\"] 1 0", "\(desk.error)")
        }
    }

    @Test func `an app's storage counts on from process to process, and its command line overrides`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            #expect(try await desk.run("size").output == "12")
            #expect(try await desk.run("size").output == "13")
            #expect(try await desk.run("size", "-fontSize", "40").output == "40")
            #expect(try await desk.run("read", "fontSize", "-fontSize", "7").output == "7")
            #expect(try await desk.run("read", "fontSize").output == "41")
        }
    }

    @Test func `a program without a service keeps its settings, and gives them to a service that comes`() async throws {
        try await DefaultsDesk.with(started: false) { (desk: DefaultsDesk) async throws in
            #expect(try await desk.run("write", "name", "Ada").exit == .code(0))
            #expect(try await desk.run("read", "name").output == "Ada", "\(desk.error)")
            #expect(try await desk.run("write", "name", "Grace").exit == .code(0))
            #expect(try await desk.run("read", "name").output == "Grace")
            try await desk.device.start()
            #expect(try await desk.run("read", "name").output == "Grace")
            #expect(try await desk.other().value("name") == .string("Grace"))
            let outbox = desk.state + "/ubiquitous-store/outbox/\(editor).plist"
            #expect(!FileManager.default.fileExists(atPath: outbox))
        }
    }

    @Test func `a forked child doesn't hold back what its parent has set`() async throws {
        try await DefaultsDesk.with(started: false) { (desk: DefaultsDesk) async throws in
            let child = try await desk.run("write-and-fork", "name", "early").output
            let number = try #require(pid_t(child), "\(child) \(desk.error)")
            defer { kill(number, SIGKILL) }
            try await desk.device.start()
            #expect(try await desk.run("read", "name").output == "early", "\(desk.error)")
            #expect(try await desk.run("write", "name", "later").exit == .code(0))
            #expect(kill(number, 0) == 0)
            kill(number, SIGKILL)
            #expect(try await desk.run("read", "name").output == "later")
        }
    }

    @Test(arguments: [false, true])
    func `a domain that is emptied while the service is away keeps what nobody knew, and that is said`(hangs: Bool)
        async throws
    {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            try await desk.other().set("old", .integer(1))
            if hangs { desk.device.signal(SIGSTOP) } else { desk.device.kill() }
            for name in ["first", "second"] {
                #expect(try await desk.run("reset", name, "set").exit == .code(0))
                #expect(desk.error.contains("other values of the domain \"\(editor)\" are unknown"), "\(desk.error)")
            }
            if hangs { desk.device.signal(SIGCONT) } else { try await desk.device.restart() }
            // What the first one had set was known to the second one, from the outbox.
            #expect(try await desk.run("read", "old", "first", "second").output == "1 none set", "\(desk.error)")
        }
    }

    @Test func `a key that was changed since stays as it is when an outbox is delivered`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let other = try await desk.other()
            let generation = try await other.set("name", .string("old"))
            let (lost, kept) = (
                Outbox.Write(key: "name", value: .string("late"), isHost: false, time: 1, generation: generation),
                Outbox.Write(key: "size", value: .integer(1), isHost: false, time: 1, generation: generation)
            )
            try await other.set("name", .string("newer"))
            let file = OutboxFile(domain: Text(editor), directory: desk.state + "/ubiquitous-store/outbox")
            #expect(file.add([lost, kept]))
            #expect(try await desk.run("read", "name", "size").output == "newer 1", "\(desk.error)")
            #expect(!file.exists)
            #expect(try await other.history("name").first?["value"] == .string("late"))
        }
    }

    @Test func `what an outbox has comes after the write whose answer was lost, and before another program's`()
        async throws
    {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let other = try await desk.other()
            let generation = try await other.set("name", .string("old"))
            try await other.set("name", .string("sent"))
            try await other.set("size", .integer(5))
            let writes = [("name", Value.string("later")), ("size", .integer(1)), ("gone", .integer(2))].map {
                Outbox.Write(
                    key: $0.0, value: $0.1, isHost: false, time: 1, generation: generation,
                    unanswered: $0.0 == "gone" ? [nil] : [.string("sent"), nil])
            }
            let file = OutboxFile(domain: Text(editor), directory: desk.state + "/ubiquitous-store/outbox")
            #expect(file.add(writes))
            #expect(try await desk.run("read", "name", "size", "gone").output == "later 5 2", "\(desk.error)")
            #expect(!file.exists)
        }
    }

    @Test func `what a program set while the service was away loses to what another has set since`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let go = desk.device.directory.path + "/go"
            let app = try desk.start(["write-later", "name", "late", go])
            try await eventually("it knows the service: \(desk.error)") { desk.output == "ready" }
            desk.device.kill()
            try Data().write(to: URL(filePath: go))
            try await eventually("it has written") { desk.output.hasSuffix("written") }
            app.send(SIGSTOP)
            try await desk.device.start()
            let other = try await desk.other()
            try await other.set("name", .string("newer"))
            app.send(SIGCONT)
            try await eventually("the late one is history") {
                try await other.history("name").first?["value"] == .string("late")
            }
            #expect(try await other.value("name") == .string("newer"))
        }
    }

    @Test func `what the service refuses of an outbox is named, and the rest is stored`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let full = (0..<4).map {
                (key: "\($0)", value: Value.data(Array(repeating: 1, count: 1 << 20 - $0 / 3 * 8)))
            }
            for (key, value) in full { try await desk.other().set(key, value) }
            let writes = [("name", Value.string(Text(String(repeating: "a", count: 9)))), ("size", .integer(1))].map {
                Outbox.Write(key: $0.0, value: $0.1, isHost: false, time: 1, generation: 0)
            }
            let file = OutboxFile(domain: Text(editor), directory: desk.state + "/ubiquitous-store/outbox")
            #expect(file.add(writes))
            #expect(try await desk.run("read", "name", "size").output == "none 1", "\(desk.error)")
            #expect(desk.error.contains("\"name\" of \(editor) was not stored and is lost"), "\(desk.error)")
            #expect(!file.exists)
        }
    }

    @Test func `synchronize says that all is kept, and it is`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            // The program prints false if the disk takes more than a second.
            try await eventually("it is synchronized") {
                try await desk.run("synchronize", "name", "Ada").output == "true"
            }
            desk.device.kill()
            try await desk.device.start()
            #expect(try await desk.other().value("name") == .string("Ada"))
            desk.device.kill()
            try await eventually("it is kept in a file") {
                try await desk.run("synchronize", "name", "Grace").output == "true"
            }
            try await desk.device.start()
            #expect(try await desk.run("read", "name").output == "Grace", "\(desk.error)")
        }
    }

    @Test func `an outbox that is torn is kept for a person, and stops nothing`() async throws {
        try await DefaultsDesk.with(started: false) { (desk: DefaultsDesk) async throws in
            _ = try await desk.run("write", "name", "Ada")
            let outbox = desk.state + "/ubiquitous-store/outbox/\(editor).plist"
            let bytes = try Data(contentsOf: URL(filePath: outbox))
            try bytes.prefix(bytes.count - 9).write(to: URL(filePath: outbox))
            #expect(try await desk.run("read", "name").output == "none")
            #expect(
                FileManager.default.fileExists(atPath: outbox + ".unreadable") && desk.error.contains("can't be read"))
            #expect(try await desk.run("write", "name", "Grace").exit == .code(0))
            #expect(try await desk.run("read", "name").output == "Grace")
        }
    }

    @Test func `a program without a home, a state directory or a bus runs as ever`() async throws {
        try await DefaultsDesk.with(started: false) { (desk: DefaultsDesk) async throws in
            let nothing = ["HOME": "", "XDG_STATE_HOME": "", "UBIQUITOUS_STORE_BUS": "unix:path=/nonexistent"]
            #expect(try await desk.run("write", "name", "Ada", variables: nothing).exit == .code(0), "\(desk.error)")
            #expect(try await desk.run("read", "name", variables: nothing).output == "none")
        }
    }

    @Test func `a program that runs follows what others write`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let app = try desk.start(["follow"])
            try await eventually("it begins: \(desk.error)") { desk.output == "size 0" }
            try await desk.other().set("fontSize", .integer(14))
            try await eventually("it follows") { desk.output.hasSuffix("size 14") }
            #expect(app.exit == nil)
        }
    }

    @Test func `a domain is replaced as a whole or not at all, whenever the program is killed`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            for round in ["one", "two", "three"] {
                _ = try await desk.run("replace", round)
                let values = try await desk.other().snapshot().values
                #expect(values.isEmpty || values.count == 500 && Set(values.values).count == 1, "\(values.count)")
            }
        }
    }

    @Test func `a service that comes while a program runs gets what the program has set, and tells it of the rest`()
        async throws
    {
        try await DefaultsDesk.with(started: false) { (desk: DefaultsDesk) async throws in
            let go = desk.device.directory.path + "/go"
            let app = try desk.start(["write-later", "name", "Ada", go])
            try await eventually("it runs: \(desk.error)") { desk.output == "ready" }
            try Data().write(to: URL(filePath: go))
            try await eventually("it has written") { desk.output.hasSuffix("written") }
            try await desk.device.start()
            try await eventually("it arrives") {
                try await desk.other().snapshot().values["name"] == .string("Ada")
            }
            #expect(app.exit == nil)
        }
    }

    /// Needs root to run a program as another user; root itself may write everywhere.
    @Test(.enabled(if: geteuid() == 0))
    func `an outbox that a person may only read is shown, said to be full, and never delivered`() async throws {
        try await DefaultsDesk.with(started: false, users: true) { (desk: DefaultsDesk) async throws in
            let nobody: UInt32 = 65534
            let state = desk.state
            func run(_ words: String...) async throws -> String {
                _ = try await desk.start(words, as: nobody).finish()
                return desk.output
            }
            try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
            chown(state, nobody, nobody)
            _ = try await run("write", "name", "Ada")
            let folder = state + "/ubiquitous-store/outbox"
            #expect(try await run("read", "name") == "Ada", "\(desk.error)")
            chmod(folder, 0o500)
            _ = try await run("write", "name", "Grace")
            #expect(desk.error.contains("can't be kept"), "\(desk.error)")
            #expect(try await run("read", "name") == "Ada")
            try await desk.device.start()
            _ = try await run("read", "name")
            #expect(OutboxFile(domain: Text(editor), directory: folder).exists)
        }
    }

    @Test func `objects may go on one thread while others write`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let exit = try await desk.run("threads").exit
            #expect(exit == .code(0) && desk.output == "true", "\(desk.error)")
        }
    }

    @Test func `two programs of one name share a domain, and programs of others do not`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let named = ["UBIQUITOUS_STORE_DOMAIN": ""]
            let folder = desk.device.directory.path
            for place in ["a/tool", "b/tool", "b/other"] {
                let path = folder + "/" + place
                try FileManager.default.createDirectory(
                    atPath: path.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 },
                    withIntermediateDirectories: true)
                try FileManager.default.copyItem(atPath: try ChildProcess.built("defaults-app"), toPath: path)
            }
            _ = try await desk.run("write", "name", "Ada", program: folder + "/a/tool", variables: named)
            let read = try await desk.run("read", "name", program: folder + "/b/tool", variables: named)
            #expect(read.output == "Ada", "\(desk.error)")
            #expect(try await desk.run("read", "name", program: folder + "/b/other", variables: named).output == "none")
            #expect(try await desk.other("tool").value("name") == .string("Ada"))
        }
    }

    @Test func `the own domain is nobody's suite, and a suite is shared`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            #expect(try await desk.run("suite", editor, "key", "value").output == "nil")
            #expect(try await desk.run("suite", "org.example.group", "key", "value").output == "value")
            #expect(try await desk.run("suite", "org.example.group", "key", "").output == "value")
            #expect(try await desk.run("user", NSUserName(), "nobody-else").output == "true false")
            #expect(try await desk.run("register").output == "5")
            #expect(try await desk.run("read", "only registered").output == "none")
        }
    }

    @Test func `an outbox of another version stays for that version, and nothing is lost`() async throws {
        try await DefaultsDesk.with(started: false) { (desk: DefaultsDesk) async throws in
            let folder = desk.state + "/ubiquitous-store/outbox"
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            let newer = try PropertyListSerialization.data(
                fromPropertyList: ["Version": 2, "Domain": editor], format: .binary, options: 0)
            try newer.write(to: URL(filePath: "\(folder)/\(editor).plist"))
            #expect(try await desk.run("write", "name", "Ada").exit == .code(0))
            #expect(try await desk.run("read", "name").output == "Ada", "\(desk.error)")
            try await desk.device.start()
            #expect(try await desk.run("read", "name").output == "Ada")
            #expect(try await desk.other().value("name") == .string("Ada"))
            let left = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix("plist") }
            #expect(left == ["\(editor).plist"])
            #expect(try Data(contentsOf: URL(filePath: "\(folder)/\(editor).plist")) == newer)
        }
    }

    @Test func `a clock that is set back makes neither a read nor the end wait longer`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            desk.device.signal(SIGSTOP)
            let programs = URL(filePath: try ChildProcess.built("defaults-app")).deletingLastPathComponent()
            let clock = [
                "LD_PRELOAD": programs.appending(path: "libShiftedClock.so").path, "SHIFTED_CLOCK": "0",
                "SHIFTED_CLOCK_STEP": "-3600",
            ]
            #expect(try await desk.run("read", "name", variables: clock).output == "none", "\(desk.error)")
            #expect(try await desk.run("write", "name", "kept", variables: clock).exit == .code(0), "\(desk.error)")
            desk.device.signal(SIGCONT)
            #expect(try await desk.run("read", "name").output == "kept", "\(desk.error)")
        }
    }

    @Test func `a service that hangs holds nothing up for long, and loses nothing`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            #expect(try await desk.run("write", "name", "Ada").exit == .code(0))
            desk.device.signal(SIGSTOP)
            #expect(try await desk.run("write", "name", "Grace").exit == .code(0))
            #expect(try await desk.run("read", "name").output == "Grace", "\(desk.error)")
            desk.device.signal(SIGCONT)
            #expect(try await desk.run("read", "name").output == "Grace", "\(desk.error)")
        }
    }
}
