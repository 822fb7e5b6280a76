// SPDX-License-Identifier: Apache-2.0

import DefaultsDomains
import Foundation
import Glibc
import PropertyList
import SeededRandom
import Testing
import UbiquitousStoreTesting

/// Programs that set and remove at random, while the service is killed, or its disk is full.
@Suite(.serialized, .timeLimit(.minutes(10)))
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
