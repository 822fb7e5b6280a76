// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import SDBus
import Sealing
import StoreBus
import Testing
import UbiquitousStoreTesting

/// An attacker who controls the remote of encrypted accounts, and has all that was ever in it, writes there at will.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct RemoteHolderTests {
    private static let encrypted: KeyValuePairs<String, Value> = ["encrypt": .boolean(true)]

    /// Returns the files of a folder, by their paths.
    private func files(below folder: String) throws -> [String: Data] {
        try FileManager.default.subpathsOfDirectory(atPath: folder).reduce(into: [:]) { files, name in
            var isDirectory: ObjCBool = false
            let path = folder + "/" + name
            if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), !isDirectory.boolValue {
                files[name] = FileManager.default.contents(atPath: path)
            }
        }
    }

    private func put(_ bytes: Data, _ name: String, in folder: String) throws {
        try bytes.write(to: URL(filePath: folder + "/" + name))
    }

    private func keep(_ words: String, from devices: TwoDevices) {
        for device in [devices.laptop, devices.phone] { device.keepSecret(words) }
    }

    @Test func `what was ever there, put back under any name, changes no value and no key`() async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await laptop.join(devices.url, Self.encrypted)
            let first = try await laptop.recoveryPhrase(flags: 1)
            keep(first, from: devices)
            try await phone.join(devices.url, ["recovery-phrase": .string(Text(first))])
            var history: [(name: String, bytes: Data)] = []
            var words = first
            for round in 0..<4 {
                try await devices.store(devices.laptop).set("laptop", .integer(Int64(round)))
                try await devices.store(devices.phone).set("phone", .integer(Int64(round)))
                try await devices.store(devices.phone).set("of round \(round)", "kept")
                if round == 2 { try await devices.store(devices.laptop).remove("of round 0") }
                _ = try await devices.converge()
                history += try files(below: devices.folder).sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
                guard round == 1 else { continue }
                try await laptop.replaceKey()
                words = try await laptop.recoveryPhrase(flags: 1)
                keep(words, from: devices)
                #expect(await errorName { try await phone.syncNow() } == "KeyNeeded")
                try await phone.unlock(words)
            }
            let values = try await devices.converge()
            #expect(values.count == 5)
            @BusActor func expectNothing(_ what: String) async throws {
                for device in [devices.laptop, devices.phone] { try await device.restart() }
                #expect(try await devices.converge() == values, "\(what)")
                for device in [devices.laptop, devices.phone] {
                    let account = try devices.account(device)
                    #expect(try await account.recoveryPhrase() == words, "\(what)")
                    #expect(try await account.property("Encrypted") == .boolean(true), "\(what)")
                    #expect(try await account.lastError() == "", "\(what)")
                }
            }
            // The oldest files are put back last.
            for (name, bytes) in history.reversed() { try put(bytes, name, in: devices.folder) }
            try await expectNothing("under their own names")
            for folder in ["h/", "s/"] {
                let names = try files(below: devices.folder).keys.filter { $0.hasPrefix(folder) }.sorted()
                for (number, old) in history.filter({ $0.name.hasPrefix(folder) }).enumerated() {
                    try put(old.bytes, names[number % names.count], in: devices.folder)
                    try put(old.bytes, old.name + ".sync-conflict-\(number)", in: devices.folder)
                }
                try await expectNothing("under others' names in \(folder)")
            }
            // Any old files, under the names of notes of every kind.
            let notes = try files(below: devices.folder).keys.filter { $0.hasPrefix("a/") && $0.utf8.count > 34 }
            #expect(!notes.isEmpty)
            for (number, name) in notes.sorted().enumerated() {
                try put(history[number].bytes, name, in: devices.folder)
                for kind in ["01", "02", "03", "04"] where !name.hasSuffix(kind) {
                    try put(history[number].bytes, name.dropLast(2) + kind, in: devices.folder)
                }
            }
            try await expectNothing("in the place of notes")
        }
    }

    @Test func `the files of two accounts, all put into the remotes of both, keep two accounts`() async throws {
        try await withTwoDevices { devices in
            let folders = [devices.folder, try devices.makeFolder("other")]
            let both = [devices.laptop, devices.phone]
            let names = ["laptop", "phone"]
            var (words, files): ([String], [[String: Data]]) = ([], [])
            for ((device, name), folder) in zip(zip(both, names), folders) {
                let account = try devices.account(device)
                try await account.join("folder://" + folder, Self.encrypted)
                words.append(try await account.recoveryPhrase(flags: 1))
                keep(words[words.count - 1], from: devices)
                try await devices.store(device).set("whose", .string(Text(name)))
                try await devices.store(device).set(name, .integer(1))
                try await account.syncNow()
                files.append(try self.files(below: folder))
            }
            for (name, bytes) in files[1] { try put(bytes, name, in: folders[0]) }
            for (name, bytes) in files[0] { try put(bytes, name, in: folders[1]) }
            var stopped = 0
            for (index, device) in both.enumerated() {
                try await device.restart()
                let account = try devices.account(device)
                // Of the two keys the smaller one counts as the account's, unless the user has decided otherwise.
                if await errorName({ try await account.syncNow() }) == "KeyNeeded" {
                    stopped += 1
                    #expect(try await account.text("LastErrorMessage").contains("somebody else has put it there"))
                    try await account.resolve("local")
                }
                try await devices.store(device).set("later", .integer(Int64(index)))
                try await account.syncNow()
                let values = try await devices.store(device).everything()
                let own: [Text: Value] = [
                    "whose": .string(Text(names[index])), Text(names[index]): .integer(1),
                    "later": .integer(Int64(index)),
                ]
                #expect(values == own)
                #expect(try await account.recoveryPhrase() == words[index])
                // The check names the other account's marker.
                let steps = try await account.check("folder://" + folders[index])
                let other = try #require(files[1 - index].keys.first { $0.hasPrefix("a/") }).dropFirst(2)
                #expect("\(steps)".contains(other), "\(steps)")
                // A device that signs in again with the account's phrase gets this account, and no other.
                try await account.signOut()
                try await account.join(
                    "folder://" + folders[index],
                    ["recovery-phrase": .string(Text(words[index])), "reject-others": .boolean(true)])
                try await account.syncNow()
                #expect(try await devices.store(device).everything() == own)
            }
            #expect(stopped == 1)
        }
    }

    @Test func `10,000 notes and 300 keys that lead in circles stop no device that has the key`() async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await laptop.join(devices.url, Self.encrypted)
            let words = try await laptop.recoveryPhrase(flags: 1)
            keep(words, from: devices)
            try await devices.store(devices.laptop).set("kept", .integer(1))
            try await laptop.syncNow()
            let marker = try #require(try files(below: devices.folder).keys.first { $0.hasPrefix("a/") })
            let own = try #require(KeyIdentifier(marker.dropFirst(2)))
            // All of these identifiers are smaller than the account's.
            let keys = try (0..<300).map { number in
                try #require(
                    AccountKey(
                        secret: [UInt8](repeating: 3, count: 16), identifier: KeyIdentifier(high: 0, low: number)))
            }
            let guessed = try #require(AccountKey(secret: [UInt8](repeating: 4, count: 16), identifier: own))
            for (number, key) in keys.enumerated() {
                let next = keys[(number + 1) % keys.count].identifier
                var links = [KeyLink(from: key, to: next, .replaced), KeyLink(from: guessed, to: next, .replaced)]
                links += (0..<54).map { KeyLink(from: guessed, to: keys[($0 + number) % 300].identifier, .gaveWay) }
                let planted = SealedMarker(of: key, time: 1, links: links)
                try put(Data(planted.bytes), "a/\(key.identifier)", in: devices.folder)
            }
            for number in 0..<10_000 as Range<UInt64> {
                let to = KeyIdentifier(high: number % 2, low: number / 2)
                let note = KeyLink(from: guessed, to: to, [.replaced, .joined, .gaveWay][Int(number % 3)])
                try put(Data(note.note()), "a/\(note.noteName)", in: devices.folder)
            }
            try await devices.laptop.restart()
            // Not every cycle reads the markers.
            for _ in 0..<21 { try await laptop.syncNow() }
            // The right phrase, on a device that has nothing else.
            let error = await failure {
                try await phone.signIn(devices.url, ["recovery-phrase": .string(Text(words))])
            }
            #expect(error?.name.hasSuffix(".KeyWrong") == true)
            #expect(error?.message.contains("first 256 keys") == true, "\(String(describing: error))")
            try await devices.store(devices.laptop).set("later", .integer(2))
            try await laptop.syncNow()
            #expect(try await laptop.recoveryPhrase() == words)
            #expect(try await laptop.lastError() == "")
            // The account gets a key that the attacker has not seen, and the attacker's markers are removed.
            for key in keys {
                try FileManager.default.removeItem(atPath: devices.folder + "/a/\(key.identifier)")
            }
            try await laptop.replaceKey()
            let next = try await laptop.recoveryPhrase(flags: 1)
            keep(next, from: devices)
            #expect(
                await errorName {
                    try await phone.signIn(devices.url, ["recovery-phrase": .string(Text(words))])
                } == "KeyWrong")
            try await phone.join(devices.url, ["recovery-phrase": .string(Text(next))])
            #expect(try await devices.converge() == ["kept": .integer(1), "later": .integer(2)])
        }
    }
}
