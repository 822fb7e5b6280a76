// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// Manifests in directories, as the running service reads them.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct ManifestTests {
    /// Returns the identifiers of the stores that the caller may open.
    private func entitled(_ machine: Machine) async throws -> [String] {
        try await machine.client().manager("Identify") { _ in
        } decode: { answer in
            for (key, value) in try answer.readValues() where key == "entitled" {
                guard case .array(let values) = value else { continue }
                return values.map { if case .string(let text) = $0 { text.string } else { "" } }
            }
            return []
        }
    }

    private func path(_ machine: Machine, _ name: String) -> String { machine.device.manifestDirectory + "/" + name }

    @Test func `what is broken is refused with its file and the reason, and the others go on`() async throws {
        try await withMachine(started: false) { machine in
            let device = machine.device
            let good = ManifestText("broken").xml
            let texts = [
                ("not", "this is no property list"), ("array", "<plist version=\"1.0\"><array/></plist>"),
                ("noapp", ManifestText("broken", application: nil).xml),
                ("characters", ManifestText("bro/ken", application: "a").xml),
                ("long", ManifestText(String(repeating: "a", count: 256), application: "a").xml),
                ("large", good + String(repeating: " ", count: 64 << 10)),
            ]
            for (name, text) in texts { try device.install(text, as: name + ".plist") }
            try device.install(good, as: "writable.plist", mode: 0o666)
            try device.install(good, as: "group.plist", mode: 0o664)
            try device.install(good, as: "target")
            symlink(path(machine, "target"), path(machine, "link.plist"))
            mkfifo(path(machine, "fifo.plist"), 0o644)
            mkdir(path(machine, "directory.plist"), 0o755)
            symlink("/nowhere", path(machine, "dangling.plist"))
            try device.install(good, as: "huge.plist")
            truncate(path(machine, "huge.plist"), 100 << 20)
            try device.install(good, as: ".hidden.plist")
            try device.install(good, as: "name.txt")
            try await device.start()
            #expect(try await entitled(machine) == [notes])
            let log = device.log
            for name in texts.map(\.0) + ["writable", "group", "link", "fifo", "directory", "dangling", "huge"] {
                #expect(log.contains("/\(name).plist is refused: "), "\(name)")
            }
            for reason in [
                "application-identifier: ", "com.apple.developer.ubiquity-kvstore-identifier: ",
                "others may write", "symbolic link", "not a regular file", "not a dictionary", "65",
            ] {
                #expect(log.contains(reason), "\(reason)")
            }
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `a manifest of a user who is neither root nor the service's is refused`() async throws {
        try await withMachine(started: false) { machine in
            for (name, owner) in [("stranger", Users.nobody), ("service", Users.service ?? 0)] {
                try machine.device.install(ManifestText(name).xml, as: name + ".plist")
                chown(path(machine, name + ".plist"), owner, gid_t.max)
            }
            try await machine.device.start()
            #expect(try await entitled(machine) == [notes, "service"])
            #expect(machine.device.log.contains("owned by the user \(Users.nobody)"))
        }
    }

    @Test func `a manifest that is changed, added or removed counts soon`() async throws {
        try await withMachine { machine in
            try machine.device.install(ManifestText("b").xml, as: "b.plist")
            try await eventually("an added one counts") { try await entitled(machine) == ["b", notes] }
            try machine.device.install(ManifestText("c").xml, as: "b.plist")
            try await eventually("a changed one counts") { try await entitled(machine) == ["c", notes] }
            unlink(path(machine, "b.plist"))
            try await eventually("a removed one doesn't") { try await entitled(machine) == [notes] }
        }
    }

    @Test func `SIGHUP has the manifests read, and the service manager is told`() async throws {
        try await withMachine { machine in
            let started = machine.device.notified.count
            machine.device.signal(SIGHUP)
            func notified(_ state: String) -> Bool {
                machine.device.notified.dropFirst(started).contains { $0.hasPrefix(state) }
            }
            try await eventually("it is told") { notified("RELOADING=1") }
            try await eventually("it is over") { notified("READY=1") }
            #expect(try await entitled(machine) == [notes])
        }
    }

    @Test func `after Reload the new manifests are in force`() async throws {
        try await withMachine { machine in
            let client = try machine.client(as: Users.areSeveral ? 0 : nil)
            let store = try machine.store()
            try await store.subscribe(0x1)
            try machine.device.install(ManifestText("new").xml, as: "new.plist")
            unlink(path(machine, "app0.plist"))
            try await client.manager("Reload")
            #expect(try await entitled(machine) == ["new"])
            #expect(await errorName { _ = try await machine.store().everything() } == "UnknownObject")
        }
    }

    @Test func `a later directory's file replaces an earlier one's of the same name, and an empty one masks it`()
        async throws
    {
        let directories = try TemporaryDirectory()
        let (first, second) = (try directories.makeDirectory("1"), try directories.makeDirectory("2"))
        func write(_ text: String, _ path: String) throws {
            try text.write(toFile: path, atomically: false, encoding: .utf8)
            chmod(path, 0o644)
        }
        for name in ["kept", "replaced", "masked"] { try write(ManifestText(name).xml, "\(first)/\(name).plist") }
        try write(ManifestText("replacing").xml, second + "/replaced.plist")
        try write("", second + "/masked.plist")
        try write(ManifestText("added").xml, second + "/added.plist")
        try await withMachine {
            $0.arguments = ["--manifest-directory", first, "--manifest-directory", second]
        } _: { machine in
            #expect(try await entitled(machine) == ["added", "kept", notes, "replacing"])
            unlink(second + "/masked.plist")
            try await eventually("it is unmasked") { try await entitled(machine).contains("masked") }
        }
        withExtendedLifetime(directories) {}
    }

    @Test func `a directory that is made later is found`() async throws {
        let directory = try TemporaryDirectory()
        let later = directory.path + "/a/b"
        try await withMachine {
            $0.arguments = ["--manifest-directory", later]
        } _: { machine in
            #expect(try await entitled(machine) == [notes])
            _ = try directory.makeDirectory("a")
            _ = try directory.makeDirectory("a/b")
            let path = later + "/x.plist"
            try ManifestText("later").xml.write(toFile: path + ".part", atomically: false, encoding: .utf8)
            chmod(path + ".part", 0o644)
            rename(path + ".part", path)
            try await eventually("it counts") { try await entitled(machine).contains("later") }
        }
    }

    @Test func `two that claim one identifier share it as one team or one app, and else neither has it`() async throws {
        let manifests = [
            ManifestText("contested", application: "a"), ManifestText("contested", application: "b"),
            ManifestText("team", application: "a", team: "T"), ManifestText("team", application: "b", team: "T"),
            ManifestText("app", application: "a", team: "T"), ManifestText("app", application: "a"),
        ]
        try await withMachine {
            $0.manifests += manifests
        } _: { machine in
            let identifiers = try await entitled(machine)
            #expect(identifiers == ["app", notes, "team"])
            #expect(machine.device.log.contains("contested"))
            let refusal = await failure {
                try await machine.client().manager("OpenStore") {
                    try $0.append("contested")
                    try $0.appendDictionary {}
                }
            }
            #expect(refusal?.message.contains("share neither their team") == true, "\(refusal?.message ?? "")")
        }
    }

    @Test func `keys that a manifest keeps here are not counted`() async throws {
        try await withMachine {
            $0.manifests = [ManifestText(notes, localKeys: ["window", "cache.*"])]
        } _: { machine in
            let store = try machine.store()
            try await store.apply(["window": .integer(1), "cache.a": .integer(2), "theme": .integer(3)])
            #expect(try await store.property("KeyCount") == .integer(1))
            #expect(try await store.property("PendingChanges") == .integer(1))
            #expect(try await store.everything().count == 3)
            try machine.device.install(ManifestText(notes).xml, as: "app0.plist")
            try await eventually("they are counted") { try await store.property("KeyCount") == .integer(3) }
            #expect(
                try await store.everything() == ["window": .integer(1), "cache.a": .integer(2), "theme": .integer(3)]
            )
        }
    }

    @Test(arguments: ["refused", "refused at the next start", "gone", "gone, and the record of them damaged"])
    func `keys that an app keeps here stay while its manifest is refused or gone, beside another app's`(how: String)
        async throws
    {
        let editor = ManifestText(notes, application: "editor", team: "team", localKeys: ["window"])
        try await withMachine {
            $0.manifests = [editor, ManifestText(notes, application: "helper", team: "team")]
        } _: { machine in
            let device = machine.device
            try await machine.store().apply(["window": .integer(1), "theme": .integer(2)])
            let (isDamaged, isRestarted) = (how.hasSuffix("damaged"), !["refused", "gone"].contains(how))
            if isRestarted { try await device.stop() }
            unlink(path(machine, "app0.plist"))
            if !how.hasPrefix("gone") { try device.install("junk", as: "app0.plist") }
            if isDamaged {
                let user = try machine.client().uid
                let record = device.stateDirectory + "/u\(user)/local-keys.plist"
                #expect(truncate(record, 20) == 0)
            }
            if isRestarted { try await device.start() } else { try await reload(machine) }
            #expect(try await machine.store().property("KeyCount") == .integer(1))
            try await machine.store().set("window", .integer(3))
            #expect(try await machine.store().property("KeyCount") == .integer(1))
            #expect(try await machine.store().everything() == ["window": .integer(3), "theme": .integer(2)])
            try device.install(editor.xml, as: "app0.plist")
            try await reload(machine)
            #expect(try await machine.store().everything() == ["window": .integer(3), "theme": .integer(2)])
            // Its own manifest gives them up, unless nobody knows any more whose they were.
            let without = ManifestText(notes, application: "editor", team: "team")
            try device.install(without.xml, as: "app0.plist")
            try await reload(machine)
            #expect(try await machine.store().property("KeyCount") == .integer(isDamaged ? 1 : 2))
            #expect(device.log.contains("local-keys.plist is damaged") == isDamaged)
        }
    }

    @Test func `a manifest that is refused after a change stays in force as it was`() async throws {
        try await withMachine { machine in
            try machine.device.install("junk", as: "app0.plist")
            try await reload(machine)
            #expect(try await entitled(machine) == [notes])
            #expect(machine.device.log.contains("It stays in force as it was."))
            unlink(path(machine, "app0.plist"))
            try await reload(machine)
            #expect(try await entitled(machine) == [])
        }
    }

    private func reload(_ machine: Machine) async throws {
        try await machine.client(as: Users.areSeveral ? 0 : nil).manager("Reload")
    }

    @Test func `an undeclared identifier is there if the service was started so`() async throws {
        try await withMachine {
            $0.arguments = ["--allow-undeclared"]
        } _: { machine in
            try await machine.store("org.example.Undeclared").set("key", .integer(1))
            #expect(try await machine.store("org.example.Undeclared").value("key") == .integer(1))
            #expect(try await entitled(machine) == [notes])
            let identity = try await machine.client().manager("Identify") { _ in
            } decode: {
                Dictionary(uniqueKeysWithValues: try $0.readValues().map { ($0.key, $0.value) })
            }
            #expect(identity["undeclared"] == .boolean(true))
            for identifier in ["a/b", "\u{e9}", "a b"] {
                #expect(await errorName { _ = try await machine.store(identifier).everything() } == "UnknownObject")
            }
        }
    }
}
