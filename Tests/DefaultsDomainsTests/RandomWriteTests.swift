// SPDX-License-Identifier: Apache-2.0

import DefaultsDomains
import Foundation
import Glibc
import PropertyList
import SeededRandom
import Testing
import UbiquitousStoreTesting

/// Programs that set and remove at random, while the service is killed, or its disk is full.
@Suite(.serialized, .timeLimit(.minutes(30)))
struct RandomWriteTests {
    /// How often each program writes; script/full has it write for minutes.
    private static let count =
        ProcessInfo.processInfo.environment["RANDOM_WRITES"].flatMap(Int.init) ?? 1500

    /// Reads the numbers to which a program has set each key; `nil` is a removal.
    private func journal(_ path: String) throws -> [String: [Int?]] {
        var found: [String: [Int?]] = [:]
        for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
            let words = line.split(separator: "\t").map(String.init)
            found[words[0], default: []].append(Int(words[1]))
        }
        return found
    }

    private func number(_ value: Value?) -> Int? {
        guard case .dictionary(let fields) = value, case .integer(let number) = fields["number"] else { return nil }
        return Int(number)
    }

    @Test(arguments: [1, .random(in: 2...(.max))] as [UInt64])
    func `what two programs have set is there when both have ended, though the service was killed again and again`(
        seed: UInt64
    ) async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            var random = SplitMix(seed: seed)
            let names = ["one", "two"]
            let paths = names.map { desk.device.directory.path + "/journal-" + $0 }
            let apps = try zip(names, paths).map { name, path in
                try desk.start(["journal", path, name, "\(Self.count)", "\(random.next() >> 1)"])
            }
            while apps.contains(where: { $0.exit == nil }) {
                try await desk.device.restart()
                // Between two kills some writes reach the service, and some wait.
                let generation = try await desk.other().snapshot().generation + .random(in: 1...40, using: &random)
                try await eventually("something is written") {
                    let now = try await desk.other().snapshot().generation
                    return now >= generation || apps.allSatisfy { $0.exit != nil }
                }
            }
            for app in apps { #expect(try await app.finish() == .code(0), "\(desk.error)") }
            // The next program delivers what these couldn't.
            #expect(try await desk.run("read", "name").exit == .code(0), "\(desk.error)")
            try await check(desk, names, try paths.map(journal))
        }
    }

    @Test(arguments: [1, .random(in: 2...(.max))] as [UInt64])
    func `what a program has synchronized is there, though it is killed, and the service too`(seed: UInt64)
        async throws
    {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            var random = SplitMix(seed: seed)
            for round in 0..<12 {
                let path = desk.device.directory.path + "/journal-\(round)"
                let app = try desk.start(["journal", path, "one", "\(Self.count)", "\(random.next() >> 1)"])
                try await eventually("the program has begun") { FileManager.default.fileExists(atPath: path) }
                for _ in 0..<Int.random(in: 0...3, using: &random) {
                    try await Task.sleep(for: .milliseconds(Int.random(in: 0...150, using: &random)))
                    try await desk.device.restart()
                }
                if Bool.random(using: &random) { desk.device.kill() }
                try await Task.sleep(for: .milliseconds(Int.random(in: 0...1500, using: &random)))
                app.kill()
                try await desk.device.restart()
                #expect(try await desk.run("read", "name").exit == .code(0), "\(desk.error)")
                let values = try await desk.other().snapshot().values
                for (key, possible) in try synchronized(path) where key.hasPrefix("one") {
                    #expect(possible.contains(number(values[Text(key)])), "round \(round), \(key): \(possible)")
                }
            }
        }
    }

    @Test(arguments: [false, true])
    func `the later of two programs' writes counts, whichever of them delivers it`(isOlderFirst: Bool) async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let settings = DefaultsDomains.UserDefaults(
                domain: editor, bus: desk.bus.address, outboxes: desk.state + "/ubiquitous-store/outbox")
            settings.set("start", forKey: "name")
            try await desk.settle(settings)
            desk.device.kill()
            if isOlderFirst {
                settings.set("running", forKey: "name")
                try await eventually("the write is kept") { settings.synchronize() }
                #expect(try await desk.run("write", "name", "ended").exit == .code(0))
            } else {
                #expect(try await desk.run("write", "name", "ended").exit == .code(0))
                settings.set("running", forKey: "name")
            }
            try await desk.device.start()
            try await desk.settle(settings)
            let expected = isOlderFirst ? "ended" : "running"
            try await eventually("the later one is there") {
                try await desk.other().value("name") == .string(Text(expected))
            }
            #expect(settings.string(forKey: "name") == expected)
        }
    }

    /// Reads the possible values of the keys that a program had set when it synchronized last: those from then, or later
    /// ones.
    private func synchronized(_ path: String) throws -> [String: [Int?]] {
        var (found, last): ([String: [Int?]], [String: Int?]) = ([:], [:])
        for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
            let words = line.split(separator: "\t").map(String.init)
            if words[0] == "synchronized" {
                found = last.mapValues { [$0] }
            } else {
                last[words[0]] = .some(Int(words[1]))
                found[words[0]]?.append(Int(words[1]))
            }
        }
        return found
    }

    private func check(_ desk: DefaultsDesk, _ names: [String], _ journals: [[String: [Int?]]]) async throws {
        let values = try await desk.other().snapshot().values
        for (name, journal) in zip(names, journals) {
            for (key, numbers) in journal where key.hasPrefix(name) {
                #expect(number(values[Text(key)]) == numbers.last ?? nil, "\(key): \(numbers.suffix(3))")
            }
        }
        for (key, value) in values where key.string.hasPrefix("shared") {
            #expect(journals.contains { $0[key.string, default: []].contains(number(value)) }, "\(key) is nobody's")
        }
    }

    @Test(.enabled(if: geteuid() == 0, "it needs root, to have a disk that is full"))
    func `what a program sets while the service's disk is full is stored when there is room again`() async throws {
        let place = try TemporaryDirectory()
        var options = Device.Options()
        options.stateDirectory = try place.mountSmallDisk("disk", bytes: 2 << 20)
        try await DefaultsDesk.with(options) { (desk: DefaultsDesk) async throws in
            #expect(try await desk.run("write", "first", "1").exit == .code(0))
            let filling = place.path + "/disk/filling"
            try Data().write(to: URL(filePath: filling))
            let handle = try #require(FileHandle(forWritingAtPath: filling))
            for size in [65536, 512] {
                while (try? handle.write(contentsOf: Data(repeating: 1, count: size))) != nil {}
            }
            let other = try await desk.other()
            await #expect(throws: (any Error).self, "the disk is full") {
                try await other.set("other", .data(Array(repeating: 1, count: 500_000)))
            }
            let path = desk.device.directory.path + "/journal"
            #expect(try await desk.start(["journal", path, "one", "300", "7"]).finish() == .code(0))
            unlink(filling)
            try handle.close()
            #expect(try await desk.run("read", "first").output == "1", "\(desk.error)")
            try await check(desk, ["one"], [try journal(path)])
        }
    }
}
