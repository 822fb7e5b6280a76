// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import PropertyListFiles
import Testing

@testable import AppManifest

private let identifierKey = "com.apple.developer.ubiquity-kvstore-identifier"
private let applicationKey = "application-identifier"
private let teamKey = "com.apple.developer.team-identifier"

struct ManifestTests {
    private func manifest(
        _ changes: [String: Any?] = [:],
        format: PropertyListSerialization.PropertyListFormat = .xml
    ) throws -> Manifest {
        var entries: [String: Any] = [identifierKey: "org.example.Notes", applicationKey: "org.example.Notes"]
        for (key, value) in changes { entries[key] = value }
        let data = try PropertyListSerialization.data(fromPropertyList: entries, format: format, options: 0)
        return try Manifest(propertyList: Array(data))
    }

    private func refusedKey(_ changes: [String: Any?]) -> String? {
        do {
            _ = try manifest(changes)
            return "not refused"
        } catch {
            return (error as? Manifest.Refusal)?.key
        }
    }

    @Test(arguments: [PropertyListSerialization.PropertyListFormat.xml, .binary])
    func `a manifest with the two keys is enough`(format: PropertyListSerialization.PropertyListFormat) throws {
        let manifest = try manifest(format: format)
        #expect(manifest.identifier == "org.example.Notes" && manifest.applicationIdentifier == "org.example.Notes")
        #expect(manifest.teamIdentifier == nil && manifest.groups.isEmpty && manifest.localKeys.isEmpty)
    }

    @Test func `the variables are expanded, the team's prefix to nothing where there is no team`() throws {
        let variable = "$(TeamIdentifierPrefix)$(CFBundleIdentifier)"
        #expect(try manifest([identifierKey: variable]).identifier == "org.example.Notes")
        #expect(try manifest([identifierKey: variable, teamKey: "TEAM"]).identifier == "TEAM.org.example.Notes")
        #expect(
            try manifest([identifierKey: "$(TeamIdentifierPrefix)shared", teamKey: "T"]).identifier == "T.shared"
        )
    }

    @Test func `lists are taken over`() throws {
        let manifest = try manifest([
            "com.apple.security.application-groups": ["group.a", "$(TeamIdentifierPrefix)group.b"],
            teamKey: "T",
            "org.example.UbiquitousStore.local-keys": ["window", "cache.*"],
        ])
        #expect(manifest.groups == ["group.a", "T.group.b"] && manifest.localKeys == ["window", "cache.*"])
    }

    @Test func `keys that are not known are left alone`() throws {
        #expect(try manifest(["com.apple.security.app-sandbox": true]).identifier == "org.example.Notes")
    }

    @Test func `an identifier of 255 characters is one, and of 256 is none`() throws {
        let name = String(repeating: "a", count: 255)
        #expect(try manifest([identifierKey: name]).identifier == name)
        #expect(refusedKey([identifierKey: name + "a"]) == identifierKey)
    }

    @Test(arguments: ["", "a b", "a/b", "ä", "a\u{0}b", "$(Other)", "a\n", "..%"])
    func `an identifier of other characters is refused by its key`(identifier: String) {
        #expect(refusedKey([identifierKey: identifier]) == identifierKey)
    }

    @Test func `a manifest without the identifier of a store is one of an app that has none`() throws {
        #expect(try manifest([identifierKey: Any?.none]).identifier == nil)
    }

    @Test func `a key that is missing or of another type is refused by its name`() {
        #expect(refusedKey([applicationKey: Any?.none]) == applicationKey)
        #expect(refusedKey([identifierKey: 1]) == identifierKey)
        #expect(refusedKey([applicationKey: ["a"]]) == applicationKey)
        #expect(refusedKey([applicationKey: "no/id"]) == applicationKey)
        #expect(refusedKey([teamKey: true]) == teamKey)
        #expect(refusedKey(["com.apple.security.application-groups": "a"]) == "com.apple.security.application-groups")
        #expect(refusedKey(["org.example.UbiquitousStore.local-keys": [1]]) == "org.example.UbiquitousStore.local-keys")
    }

    @Test(
        arguments: [
            "", "no property list", "<?xml version=\"1.0\"?><plist><dict><key>a</key></dict>",
            "<plist version=\"1.0\"><array/></plist>", "<plist version=\"1.0\"><string>a</string></plist>",
            "bplist00", "bplist00\u{1}\u{2}\u{3}", "{ a = b; }",
        ])
    func `what is no property list of a dictionary is refused as a whole`(text: String) {
        #expect {
            try Manifest(propertyList: Array(text.utf8))
        } throws: { error in
            (error as? Manifest.Refusal).map { $0.key == nil } ?? false
        }
    }

    @Test(arguments: [0, 0xFFFF, 0xFDD0] as [UInt32])
    func `a string that no message can carry is refused by its key`(number: UInt32) throws {
        let text = "a" + String(try #require(Unicode.Scalar(number)))
        let key = "org.example.UbiquitousStore.ubiquitous-defaults"
        let root: [Text: Value] = [
            Text(identifierKey): .string("org.example.Notes"), Text(applicationKey): .string("org.example.Notes"),
            Text(key): .array([.string(Text(text))]),
        ]
        let bytes = try FileFormat.binary.write(.dictionary(root))
        #expect(throws: Manifest.Refusal(key: key, reason: "a string has a character that no message can carry")) {
            try Manifest(propertyList: bytes)
        }
    }

    /// Each variable that is replaced may insert 255 bytes, and a manifest of 64 KiB has room for thousands.
    @Test(arguments: [
        ("$(TeamIdentifierPrefix)", 100, "T"), ("$(TeamIdentifierPrefix)", 1400, "$(CFBundleIdentifier)"),
        ("$(TeamIdentifierPrefix)", 1, "a\u{301}\u{327}"),
    ])
    func `an identifier that would become very long is refused before it does`(
        _ part: String, _ count: Int, _ team: String
    ) throws {
        let root: [Text: Value] = [
            Text(identifierKey): .string(Text(String(repeating: part, count: count))),
            Text(applicationKey): .string("org.example.Notes"),
            "com.apple.developer.team-identifier": .string(Text(team)),
        ]
        let bytes = try FileFormat.binary.write(.dictionary(root))
        let refusal = #expect(throws: Manifest.Refusal.self) { try Manifest(propertyList: bytes) }
        #expect(refusal.map { "\($0)".utf8.count < 1000 } == true)
    }

    @Test func `what is kept of a manifest is the same manifest, and little`() throws {
        let dates = String(repeating: "<date>2020-01-01T00:00:00Z</date>", count: 1000)
        func array(_ key: String, _ word: String) -> String {
            "<key>\(key)</key><array><string>\(word)</string></array>"
        }
        let own = "org.example.UbiquitousStore."
        let text =
            "<plist version=\"1.0\"><dict><key>\(applicationKey)</key><string>org.example.Notes</string>"
            + "<key>\(identifierKey)</key><string>$(TeamIdentifierPrefix)shared</string>"
            + "<key>com.apple.developer.team-identifier</key><string>TEAM</string>"
            + "<key>x</key><array>\(dates)</array>" + array(own + "local-keys", "size*")
            + array(own + "ubiquitous-defaults", "ö") + array(own + "executables", "/usr/bin/notes") + "</dict></plist>"
        let manifest = try Manifest(propertyList: Array(text.utf8))
        #expect(manifest.identifier == "TEAM.shared" && !manifest.localKeys.isEmpty && !manifest.executables.isEmpty)
        let kept = try manifest.propertyList
        #expect(try Manifest(propertyList: kept) == manifest && kept.count < 1000)
    }

    @Test func `a broken file is refused with the place`() {
        let refusal = Manifest.Refusal(
            key: nil,
            reason: "it is not an XML or binary property list: line 2, column 13: </key> is expected, and there is "
                + "</dict>")
        #expect(throws: refusal) { try Manifest(propertyList: Array("<plist>\n<dict><key>a</dict></plist>".utf8)) }
    }

    @Test func `a program whose file was replaced has its path`() throws {
        let known = ["/usr/bin/a", "/usr/bin/b (deleted)"]
        let names = ["/usr/bin/a", "/usr/bin/a (deleted)", "/usr/bin/b (deleted)", "/usr/bin/c (deleted)"]
        let paths = names.map { RunningProgram.path($0) { known.contains($0) } }
        #expect(paths == ["/usr/bin/a", "/usr/bin/a", "/usr/bin/b (deleted)", "/usr/bin/c"])
        let link = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        #expect(RunningProgram.path == link)
    }

    @Test func `a property list that is nested ten thousand deep ends nothing`() {
        let count = 5000
        let text =
            "<plist version=\"1.0\">" + String(repeating: "<array>", count: count)
            + String(repeating: "</array>", count: count) + "</plist>"
        #expect(throws: Manifest.Refusal.self) { try Manifest(propertyList: Array(text.utf8)) }
    }
}
