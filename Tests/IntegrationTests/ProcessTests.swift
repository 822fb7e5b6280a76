// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// The service as a process: its options, its beginning and its end.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct ProcessTests {
    private func run(_ arguments: String...) async throws -> ProgramResult {
        try await UbiquitousStoreTesting.run([Device.program()] + arguments)
    }

    // MARK: Options

    @Test func `--help names every option, and --version is what the property says`() async throws {
        let help = try await run("--help")
        #expect(help.exit == .code(0) && help.error.isEmpty)
        for option in [
            "bus", "state-directory", "manifest-directory", "mode", "folder-root", "device-name", "allow-undeclared",
            "idle-exit", "log-level", "version", "help",
        ] {
            #expect(help.output.contains("--\(option)"), "\(option)")
        }
        let version = try await run("--version")
        #expect(version.exit == .code(0))
        try await withMachine { machine in
            let property = try await machine.client().property(
                BusNames.managerPath,
                BusNames.managerInterface,
                "Version"
            )
            #expect(property == .string(Text(version.output)))
        }
    }

    @Test(
        arguments: [
            ["--unknown"], ["--mode", "other"], ["--idle-exit", "-1"], ["--idle-exit", "soon"],
            ["--log-level", "loud"],
            ["--device-name", ""], ["--device-name", String(repeating: "a", count: 256)], ["--bus"], ["argument"],
            ["--bus", "nonsense"],
            ["--allow-undeclared"], ["--allow-undeclared", "--bus", "unix:path=/x", "--mode", "system"],
            ["--folder-root", "relative"], ["--manifest-directory", "relative"],
        ])
    func `an option that isn't right is refused with a sentence and a code`(arguments: [String]) async throws {
        let result = try await UbiquitousStoreTesting.run([Device.program()] + arguments)
        #expect(result.exit == .code(64), "\(result)")
        #expect(result.error.hasPrefix("Error: "), "\(result)")
    }

    @Test func `without a bus it ends with a sentence`() async throws {
        let directory = try TemporaryDirectory()
        let result = try await run("--bus", "unix:path=\(directory.path)/none", "--state-directory", directory.path)
        #expect(result.exit == .code(1) && !result.error.isEmpty)
        #expect(result.error.split(separator: "\n").count == 1, "\(result.error)")
    }

    @Test func `options can be given in the environment, and the command line is stronger`() async throws {
        try await withMachine {
            $0.environment = ["UBIQUITOUS_STORED_ALLOW_UNDECLARED": "1", "UBIQUITOUS_STORED_DEVICE_NAME": "other"]
        } _: { machine in
            #expect(try await machine.client().account.property("DeviceName") == .string("device"))
            _ = try await machine.store("org.example.Undeclared").everything()
        }
    }

    // MARK: Beginning

    @Test func `a second service on a state directory is refused with a sentence`() async throws {
        try await withMachine { machine in
            let second = try await run(
                "--bus",
                machine.bus.address,
                "--mode",
                "user",
                "--state-directory",
                machine.device.stateDirectory
            )
            #expect(second.exit == .code(1), "\(second)")
            #expect(second.error.contains("Another ubiquitous-stored uses the state directory"), "\(second)")
            _ = try await machine.store().everything()
        }
    }

    @Test func `a service that begins while the one before it ends takes over`() async throws {
        try await withMachine { machine in
            var options = options(machine)
            options.stateDirectory = machine.device.stateDirectory
            let next = try Device(on: machine.bus, options)
            let process = try next.launch()
            try await Task.sleep(for: .milliseconds(500))
            #expect(process.exit == nil, "\(next.log)")
            machine.device.kill()
            try await eventually("it serves") { next.log.contains("is serving") }
            next.kill()
        }
    }

    @Test func `a second service on a bus is refused with a sentence`() async throws {
        try await withMachine { machine in
            let other = try Device(on: machine.bus, options(machine))
            let second = try other.launch()
            #expect(try await second.finish() == .code(1))
            #expect(other.log.contains("is taken by"), "\(other.log)")
        }
    }

    private func options(_ machine: Machine) -> Device.Options {
        var options = Device.Options()
        options.user = Users.service
        return options
    }

    @Test func `a state directory that can't be written to, or made, is refused with a sentence`() async throws {
        try await withMachine(started: false) { machine in
            let directory = try machine.device.directory.makeDirectory("readonly", mode: 0o555)
            // Root may write to any directory, but a file is none.
            let file = machine.device.directory.path + "/file"
            try "".write(toFile: file, atomically: false, encoding: .utf8)
            for place in (Users.areSeveral || geteuid() != 0 ? [directory] : []) + [
                file, file + "/below", "/proc/nowhere",
            ] {
                var options = options(machine)
                options.stateDirectory = place
                let device = try Device(on: machine.bus, options)
                #expect(try await device.launch().finish() == .code(1), "\(place)")
                #expect(device.log.contains(place), "\(device.log)")
            }
        }
    }

    @Test func `what the service writes is its own`() async throws {
        try await withMachine { machine in
            try await machine.store().set("key", .integer(1))
            let root = URL(filePath: machine.device.stateDirectory)
            let files = FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
            var count = 0
            while let file = files?.nextObject() as? URL {
                var status = stat()
                #expect(lstat(file.path, &status) == 0 && status.st_mode & 0o077 == 0, "\(file.path)")
                count += 1
            }
            #expect(count >= 3)
        }
    }

    // MARK: Ending

    @Test func `SIGTERM ends the service at once and clean, and its log is gone`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            for number in 0..<100 { try await store.set("key \(number)", .integer(1)) }
            for signal in [SIGTERM, SIGINT] {
                machine.device.signal(signal)
                #expect(try await machine.device.finish() == .code(0))
                #expect(machine.device.notified.contains("STOPPING=1"))
                let files = try FileManager.default.subpathsOfDirectory(atPath: machine.device.stateDirectory)
                #expect(!files.contains { $0.hasSuffix("-wal") }, "\(files)")
                #expect(try await store.client.serviceOwner() == nil)
                try await machine.device.start()
            }
            #expect(try await store.property("KeyCount") == .integer(100))
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a new program's calls that came before the service was stopped are answered`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.set("key", .integer(1))
            for _ in 0..<5 {
                let owner = try await store.client.serviceOwner()
                let client = try RawClient(machine.bus, as: Users.client)
                machine.device.signal(SIGSTOP)
                for _ in 0..<20 { client.get(store.path, "key") }
                // Once the bus answers, it has passed them on.
                let bus = "org.freedesktop.DBus"
                client.call(bus, "/org/freedesktop/DBus", bus, "GetId")
                try await eventually("they have come") {
                    try #require(client.turn(waiting: 10)).contains { $0.sender == bus && $0.type == 2 }
                }
                machine.device.signal(SIGTERM)
                machine.device.signal(SIGCONT)
                #expect(try await machine.device.finish() == .code(0))
                var (answers, refusals) = (0, Set<String>())
                try await eventually("all are answered") {
                    let replies = try #require(client.turn(waiting: 10))
                    answers += replies.count { $0.type == 2 && $0.sender == owner }
                    refusals.formUnion(replies.compactMap(\.errorName))
                    return answers == 20 || !refusals.isEmpty
                }
                #expect(answers == 20, "\(refusals)")
                try await machine.device.start()
            }
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `calls that wait for their user's rest when the service is stopped are carried out`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            for round: UInt32 in 0..<3 {
                let client = try RawClient(machine.bus, as: Users.client)
                client.set(store.path, "round", round)
                try client.hearService()
                for _ in 0..<140 { client.setUnanswered(store.path, "large", bytes: 50_000) }
                client.setUnanswered(store.path, "last \(round)", bytes: 1)
                try client.awaitBus()
                machine.device.signal(SIGTERM)
                #expect(try await machine.device.finish() == .code(0))
                try await machine.device.start()
                #expect(try await store.value("last \(round)") == .data([1]))
            }
        }
    }

    @Test func `calls that are under way when the service is stopped are answered`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            let results = try await atOnce(64) { index in
                if index == 40 { machine.device.signal(SIGTERM) }
                return await errorName { try await store.set("key \(index)", .integer(1)) }
            }
            #expect(try await machine.device.finish() == .code(0))
            try await machine.device.start()
            let values = try await store.everything()
            for (index, name) in results.enumerated() where name.isEmpty {
                #expect(values[Text("key \(index)")] != nil)
            }
            #expect(
                results.allSatisfy {
                    ["", "NoReply", "ServiceUnknown", "NameHasNoOwner", "Disconnected"].contains($0)
                },
                "\(Set(results))"
            )
        }
    }

    @Test func `the service ends with 1 and a sentence when the bus goes`() async throws {
        try await withMachine { machine in
            let store = try machine.store()
            try await store.set("key", .integer(1))
            machine.bus.end()
            #expect(try await machine.device.finish() == .code(1))
            #expect(machine.device.log.contains("The connection to the bus was lost"))
        }
    }

    @Test func `with nothing to do the service ends, and the name is free`() async throws {
        try await withMachine {
            $0.arguments = ["--idle-exit", "1"]
        } _: { machine in
            let client = try machine.client()
            #expect(try await machine.device.finish() == .code(0))
            #expect(try await client.serviceOwner() == nil)
            // The log names the option, because nothing on this bus would start the service again.
            #expect(machine.device.log.contains("--idle-exit 0"))
        }
    }

    @Test func `a subscriber keeps the service, until it goes`() async throws {
        try await withMachine {
            $0.arguments = ["--idle-exit", "1"]
        } _: { machine in
            let reader = try machine.store()
            #expect(try await errorNameBeforeItsEnd(machine.device) { try await reader.subscribe(0x1) } == "")
            let other = try await Device.start(on: .start(), idle())
            // Waits for as long as another service takes to start and exit.
            #expect(try await other.finish() == .code(0))
            try await other.start()
            #expect(try await other.finish() == .code(0))
            #expect(machine.device.exit == nil)
            try await machine.store().set("key", .integer(1))
            _ = try await reader.signal("the change") { _ in true }
            reader.client.connection.close()
            #expect(try await machine.device.finish() == .code(0))
        }
    }

    @Test func `a client that only calls does not keep the service for ever`() async throws {
        try await withMachine {
            $0.arguments = ["--idle-exit", "1"]
        } _: { machine in
            let store = try machine.store()
            #expect(try await errorNameBeforeItsEnd(machine.device) { try await store.set("key", .integer(1)) } == "")
            _ = try await run("--version")
            store.client.connection.close()
            #expect(try await machine.device.finish() == .code(0))
        }
    }

    @Test func `a caller that finds nothing does not keep the service`() async throws {
        try await withMachine {
            $0.arguments = ["--idle-exit", "1"]
        } _: { machine in
            let client = try machine.client()
            let name = try await errorNameBeforeItsEnd(machine.device) {
                _ = try await client.store("undeclared").everything()
            }
            #expect(name == "UnknownObject")
            #expect(try await machine.device.finish() == .code(0))
        }
    }

    private func idle() -> Device.Options {
        var options = Device.Options()
        options.arguments = ["--idle-exit", "1"]
        return options
    }

    // MARK: The service manager

    @Test func `the service manager hears that the service is ready, alive and ending`() async throws {
        try await withMachine {
            $0.environment = ["WATCHDOG_USEC": "400000"]
        } _: { machine in
            let device = machine.device
            #expect(device.notified.contains { $0.hasPrefix("STATUS=") })
            try await eventually("it is alive") { device.notified.count { $0 == "WATCHDOG=1" } >= 3 }
            #expect(try await device.stop() == .code(0))
            #expect(device.notified.last { !$0.hasPrefix("WATCHDOG") } == "STOPPING=1")
        }
    }

    @Test func `a log for the journal has priorities, and no value is in any log`() async throws {
        try await withMachine {
            $0.environment = ["JOURNAL_STREAM": "1:2"]
        } _: { machine in
            let store = try machine.store()
            try await store.set(secret, .string(Text(secret)))
            _ = await failure { try await store.set(secret, .string(Text(String(repeating: secret, count: 100_000)))) }
            _ = await failure {
                try await store.client.account.signIn(
                    "webdav://host/",
                    ["password": .string(Text(secret)), "token": .string(Text(secret))]
                )
            }
            _ = await failure {
                try await store.client.account.call("CheckBackend") { message in
                    try message.append("folder:///nowhere")
                    try message.appendDictionary { try message.append(entry: "password", .string(Text(secret))) }
                } decode: { _ in
                }
            }
            #expect(machine.device.log.hasPrefix("<"))
            #expect(machine.device.leakedSecrets.isEmpty)
        }
    }
}
