// SPDX-License-Identifier: Apache-2.0

import AppManifest
import ManagedDefaults
import PropertyList
import PropertyListFiles
import Testing

struct ManagedFileTests {
    private func file(_ body: String) throws(Manifest.Refusal) -> ManagedFile {
        try ManagedFile(propertyList: Array("<plist version=\"1.0\"><dict>\(body)</dict></plist>".utf8))
    }

    private func reason(_ body: String) -> String {
        do {
            _ = try file(body)
            return ""
        } catch {
            return "\(error)"
        }
    }

    private let notes: Text = "org.example.Notes"

    @Test func `what no message can carry is refused, wherever it stands`() throws {
        // Swift has no literal for it.
        let noncharacter = String(try #require(Unicode.Scalar(0xFFFF as UInt32)))
        let binary = { (root: [Text: Value]) throws in
            try ManagedFile(propertyList: FileFormat.binary.write(.dictionary(root)))
        }
        let word = Text("a" + noncharacter)
        for root: [Text: Value] in [
            ["Forced": .dictionary([word: .dictionary(["k": .boolean(true)])])],
            ["Forced": .dictionary([notes: .dictionary([word: .boolean(true)])])],
            ["Forced": .dictionary([notes: .dictionary(["k": .string(word)])])],
            ["Locked": .dictionary([notes: .array([.string(word)])])],
        ] {
            #expect(throws: Manifest.Refusal.self) { try binary(root) }
        }
    }

    @Test func `that none roam is another word than none, and changes whatever the manifest names`() {
        var (managed, other) = (ManagedDomain(), ManagedDomain())
        managed.ubiquitous = KeyPatterns.none
        #expect(managed.difference(from: other) == ["*"] && other.difference(from: managed) == ["*"])
        other.ubiquitous = KeyPatterns(["colour"])
        #expect(managed.difference(from: other) == ["colour"] && managed.difference(from: managed).isEmpty)
    }

    @Test func `a file says what is forced, recommended, locked and ubiquitous, and for whom`() throws {
        let file = try file(
            """
            <key>Forced</key><dict><key>org.example.Notes</key><dict><key>size</key><integer>14</integer></dict></dict>
            <key>Recommended</key><dict><key>NSGlobalDomain</key><dict><key>dark</key><true/></dict></dict>
            <key>Locked</key><dict><key>org.example.Notes</key><array><string>secret*</string></array></dict>
            <key>Ubiquitous</key><dict><key>org.example.Notes</key><array><string>colour</string></array></dict>
            <key>Users</key><array><string>ada</string></array><key>Groups</key><array><string>staff</string></array>
            """)
        #expect(file.forced == [notes: ["size": .integer(14)]])
        #expect(file.recommended == ["NSGlobalDomain": ["dark": .boolean(true)]])
        #expect(file.locked == [notes: ["secret*"]] && file.ubiquitous == [notes: ["colour"]])
        #expect(file.users == ["ada"] && file.groups == ["staff"])
    }

    @Test func `a profile of Apple's counts as it is`() throws {
        let settings = { (key: String) in
            """
            <array><dict><key>mcx_preference_settings</key>
            <dict><key>\(key)</key><integer>1</integer></dict></dict></array>
            """
        }
        let file = try file(
            """
            <key>PayloadDisplayName</key><string>Settings</string><key>PayloadType</key><string>Configuration</string>
            <key>PayloadContent</key><array>
            <dict><key>PayloadType</key><string>com.apple.wifi.managed</string></dict>
            <dict><key>PayloadType</key><string>com.apple.ManagedClient.preferences</string>
            <key>PayloadContent</key><dict>
            <key>.GlobalPreferences</key><dict><key>Forced</key>\(settings("all"))</dict>
            <key>org.example.Notes</key><dict><key>Set-Once</key>\(settings("once"))</dict>
            </dict></dict></array>
            """)
        #expect(file.forced["NSGlobalDomain"] == ["all": .integer(1)])
        #expect(file.recommended[notes] == ["once": .integer(1)] && file.ignoredParts.isEmpty)
    }

    @Test func `what a profile wants often is named as ignored`() throws {
        let file = try file(
            """
            <key>PayloadContent</key><array>
            <dict><key>PayloadType</key><string>com.apple.ManagedClient.preferences</string>
            <key>PayloadContent</key><dict><key>org.example.Notes</key><dict><key>Often</key><array/></dict></dict></dict>
            </array>
            """)
        #expect(file.ignoredParts == ["PayloadContent → org.example.Notes → Often"])
    }

    @Test(arguments: [
        ("", false), ("<key>Users</key><array/>", true), ("<key>Users</key><array/><key>Groups</key><array/>", true),
        ("<key>Users</key><array/><key>Groups</key><array><string>lab</string></array>", false),
    ])
    func `a file whose lists name nobody is for nobody`(_ lists: String, _ isForNobody: Bool) throws {
        #expect(try file(lists).isForNobody == isForNobody)
    }

    @Test func `what is wrong is named with its key`() {
        #expect(reason("<key>Force</key><dict/>").hasPrefix("Force: this key is not known"))
        #expect(reason("<key>Forced</key><array/>") == "Forced: it has to be a dictionary")
        #expect(
            reason("<key>Forced</key><dict><key>a</key><string/></dict>") == "Forced → a: it has to be a dictionary")
        #expect(reason("<key>Users</key><string>ada</string>") == "Users: it has to be an array of strings")
        let long = String(repeating: "k", count: 513)
        let tooLong = "<key>Forced</key><dict><key>a</key><dict><key>\(long)</key><true/></dict></dict>"
        #expect(reason(tooLong).contains("513 UTF-16"))
    }

    @Test(arguments: ["..", ".", "a/b", "a\u{9}b", "", String(repeating: "d", count: 256)])
    func `a domain that can be none is refused`(_ domain: String) {
        #expect(DomainName.problem(domain) != nil)
        let body = "<key>Locked</key><dict><key>\(domain)</key><array/></dict>"
        #expect(reason(body).hasPrefix("Locked → "), "\(reason(body))")
    }

    @Test func `a file that is no property list is named with its line`() {
        let broken = Array("<plist version=\"1.0\">\n<dict>\n<key>Forced</dict></plist>".utf8)
        let error = #expect(throws: Manifest.Refusal.self) { try ManagedFile(propertyList: broken) }
        #expect(error?.key == nil && error?.reason.contains("line 3") == true)
        #expect(throws: Manifest.Refusal.self) { try ManagedFile(propertyList: Array("{}".utf8)) }
    }
}

struct ManagedSettingsTests {
    private let domain: Text = "org.example.Notes"

    private func file(_ key: String, _ value: Int, in part: String = "Forced", _ more: String = "") throws
        -> ManagedFile
    {
        try ManagedFile(
            propertyList: Array(
                """
                <plist version="1.0"><dict><key>\(part)</key><dict><key>org.example.Notes</key><dict>
                <key>\(key)</key><integer>\(value)</integer></dict></dict>\(more)</dict></plist>
                """.utf8))
    }

    @Test func `a later file wins, key by key, and is named as the source`() throws {
        let settings = ManagedSettings([
            ("10.plist", try file("a", 1)), ("20.plist", try file("b", 2)), ("30.plist", try file("a", 3)),
        ])
        let managed = settings.domain(domain, for: ManagedUser(name: "ada"))
        #expect(managed.forced == ["a": .integer(3), "b": .integer(2)])
        #expect(managed.sources == ["a": "30.plist", "b": "20.plist"])
    }

    @Test func `what is forced is the source, though a later file recommends the key`() throws {
        let settings = ManagedSettings([
            ("10.plist", try file("a", 1)), ("20.plist", try file("a", 2, in: "Recommended")),
        ])
        let managed = settings.domain(domain, for: ManagedUser(name: nil))
        #expect(managed.sources == ["a": "10.plist"] && managed.recommended == ["a": .integer(2)])
        #expect(managed.source(of: "a", isRecommended: true) == "20.plist")
        #expect(managed.source(of: "a", isRecommended: false) == "10.plist")
    }

    @Test func `a file with users and groups is for these only, and either fits`() throws {
        let scope = """
            <key>Users</key><array><string>ada</string></array>
            <key>Groups</key><array><string>lab</string></array>
            """
        let settings = ManagedSettings([("10.plist", try file("a", 1, in: "Forced", scope))])
        let people = [
            (ManagedUser(name: "ada"), true), (ManagedUser(name: "bob"), false), (ManagedUser(name: nil), false),
            (ManagedUser(name: "bob", groups: ["lab"]), true),
        ]
        for (person, isMeant) in people {
            #expect(settings.domain(domain, for: person).forced.isEmpty != isMeant)
            #expect(settings.domains(for: person) == (isMeant ? [domain] : []))
        }
    }

    @Test func `the difference names each key of which something is managed otherwise`() throws {
        let person = ManagedUser(name: nil)
        let before = ManagedSettings([("1", try file("a", 1)), ("2", try file("b", 1))]).domain(domain, for: person)
        let after = ManagedSettings([("1", try file("a", 1)), ("2", try file("b", 2))]).domain(domain, for: person)
        #expect(after.difference(from: before) == ["b"])
        #expect(ManagedDomain().difference(from: before) == ["a", "b"])
    }
}
