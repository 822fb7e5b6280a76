// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Testing
import UbiquitousStoreTesting

@testable import ControlCommands

@Suite(.timeLimit(.minutes(30)))
struct DefaultsCommandTests {
    private let editor = "org.example.Editor"

    @Test func `what is written is read, with its type, by domain and by key`() async throws {
        try await Terminal.with { (terminal: Terminal) async throws in
            func ctl(_ words: String...) async throws -> ProgramResult {
                try await terminal.ctl(arguments: ["defaults"] + words)
            }
            #expect(try await ctl("write", editor, "size", "-int", "14").code == 0)
            #expect(try await ctl("write", editor, "name", "14").code == 0)
            #expect(try await ctl("write", editor, "list", "-array", "a", "-int", "1").code == 0)
            #expect(try await ctl("write", editor, "list", "-array-add", "b").code == 0)
            #expect(try await ctl("read", editor, "size").output == "14")
            #expect(try await ctl("read-type", editor, "size").output == "Type is integer")
            #expect(try await ctl("read-type", editor, "name").output == "Type is string")
            #expect(try await ctl("--json", "read", editor, "list").output == #"["a",1,"b"]"#)
            #expect(try await ctl("domains").output == editor)
            #expect(try await ctl("-currentHost", "write", editor, "size", "-int", "15").code == 0)
            #expect(try await ctl("-currentHost", "read", editor, "size").output == "15")
            let explained = try await ctl("explain", editor, "size").output
            #expect(explained == "\(editor), this host: 15\n\(editor): 14")
            let layers = try await ctl("--json", "explain", editor, "size").output
            #expect(
                layers == #"[{"layer":"\#(editor), this host","value":15},{"layer":"\#(editor)","value":14}]"#)
            #expect(try await ctl("--json", "read-type", editor, "size").output == #""integer""#)
            #expect(try await ctl("--json", "find", "siz").output == #"{"\#(editor)":{"size":14}}"#)
            for (words, empty) in [
                (["find", "nothing"], "{}"), (["explain", editor, "nothing"], "[]"), (["read", "none"], "{}"),
            ] {
                let none = try await terminal.ctl(arguments: ["defaults", "--json"] + words)
                #expect(none.code == 1 && none.output == empty && !none.error.isEmpty, "\(none)")
            }
            expect(try await ctl("read", editor, "none"), 1, "does not exist")
            expect(try await ctl("read", "none"), 1, "Domain none does not exist")
            expect(try await ctl("write", "..", "a", "b"), 2, "is not a domain")
            expect(try await ctl("write", editor, "a", "{ b = ;"), 2, "not a property list")
            #expect(
                try await ctl("--check", "write", editor, "size", "-int", "20").output == "would set size = 20 (now 14)"
            )
            // Only the layer that a command removes counts.
            expect(try await ctl("-currentHost", "write", "org.example.Host", "k", "v"), 0)
            #expect(try await ctl("--json", "delete", "org.example.Host").output == #"{"changed":false}"#)
            #expect(try await ctl("--check", "delete", "org.example.Host").output == "nothing would change")
            #expect(try await ctl("--check", "delete-all", "org.example.Host", "k").output == "would remove k")
            #expect(
                try await ctl("--json", "-currentHost", "delete", "org.example.Host").output == #"{"changed":true}"#)
            #expect(try await ctl("--json", "delete-all", "org.example.Host").output == #"{"changed":false}"#)
            for (words, isChange) in [(["--check", "--json"], true), (["--json"], true), (["--json"], false)] {
                let write = try await terminal.ctl(
                    arguments: ["defaults"] + words + ["write", editor, "json", "-int", "1"])
                #expect(write.output == #"{"changed":\#(isChange)}"#)
            }
            #expect(try await ctl("--json", "delete", editor, "json").output == #"{"changed":true}"#)
            #expect(try await ctl("rename", editor, "name", "title").code == 0)
            #expect(try await ctl("read", editor, "title").output == "\"14\"")
            #expect(try await ctl("rename", editor, "title", "title").code == 0)
            #expect(try await ctl("read", editor, "title").output == "\"14\"")
            #expect(try await ctl("delete", editor, "title").code == 0)
            #expect(try await ctl("delete-all", editor).code == 0)
            #expect(try await ctl("domains").output == "")
        }
    }

    @Test func `what a program has set without the service is read, and is older than what is written`() async throws {
        try await Terminal.with(started: false) { (terminal: Terminal) async throws in
            let variables = ["XDG_STATE_HOME=" + terminal.file("state"), "UBIQUITOUS_STORE_DOMAIN=" + editor]
            func app(_ value: String) async throws {
                let program = try ChildProcess.built("defaults-app")
                let words = ["write", "size", value]
                #expect(try await terminal.ctl(arguments: words, variables: variables, program: program).code == 0)
            }
            func ctl(_ words: String...) async throws -> ProgramResult {
                try await terminal.ctl(arguments: ["defaults"] + words, variables: variables)
            }
            try await app("14")
            try await terminal.device.start()
            #expect(try await ctl("--check", "delete", editor, "size").output == "nothing would change")
            #expect(try await ctl("read", editor, "size").output == "\"14\"")
            terminal.device.kill()
            try await app("15")
            try await terminal.device.start()
            #expect(try await ctl("write", editor, "size", "16").code == 0)
            #expect(try await ctl("read", editor, "size").output == "\"16\"")
            #expect(try await ctl("history", editor, "size").output == "\"15\"\n\"14\"")
        }
    }

    @Test func `words that are too many, and options that come too late, change nothing`() async throws {
        try await Terminal.with { (terminal: Terminal) async throws in
            func ctl(_ words: String...) async throws -> ProgramResult {
                try await terminal.ctl(arguments: ["defaults"] + words)
            }
            #expect(try await ctl("write", editor, "size", "-int", "14").code == 0)
            try terminal.write("in.json", #"{"other": 1}"#)
            for line in [
                ["delete", editor, "size", "--check"], ["delete", editor, "-n"], ["delete-all", editor, "--dry-run"],
                ["rename", editor, "size", "width", "--check"], ["import", editor, terminal.file("in.json"), "-n"],
                ["write", editor, "--check", "5"], ["write", "-app", editor, "--json", "5"],
                ["read", editor, "--json"],
            ] {
                let result = try await terminal.ctl(arguments: ["defaults"] + line)
                expect(result, 2, "goes before the verb")
            }
            expect(try await ctl("delete", editor, "size", "width"), 2, "\"width\" is one word too many")
            expect(try await ctl("domains", editor), 2, "one word too many")
            for verb in ["watch", "write", "delete"] {
                #expect(try await ctl(verb, "--help").output.contains("USAGE: ubiquitousctl defaults"))
            }
            #expect(try await ctl("--json", "read", editor).output == #"{"size":14}"#)
            #expect(try await ctl("write", editor, "word", "-string", "--check").code == 0)
            #expect(try await ctl("read", editor, "word").output == "\"--check\"")
        }
    }

    @Test func `a check refuses what writing would refuse`() async throws {
        try await Terminal.with { (terminal: Terminal) async throws in
            for key in ["", String(repeating: "k", count: 513)] {
                for options in [[], ["--check"]] {
                    let words = ["defaults"] + options + ["write", editor, key, "1"]
                    expect(try await terminal.ctl(arguments: words), 3, "The key")
                }
            }
            let long = String(repeating: "k", count: 512)
            #expect(try await terminal.ctl("defaults", "write", editor, long, "1").code == 0)
        }
    }

    @Test func `called as defaults it writes what a terminal would obey as macOS does, and pipes get it as it is`()
        async throws
    {
        try await Terminal.with { (terminal: Terminal) async throws in
            let (program, text) = (terminal.file("defaults"), "a\u{202E}b")
            try FileManager.default.createSymbolicLink(atPath: program, withDestinationPath: Terminal.program)
            let line = ["env", "UBIQUITOUS_STORE_BUS=\(terminal.bus.address)", program]
            for value in [["word", text], ["list", "-array", text]] {
                #expect(try await run(line + ["write", editor] + value).code == 0)
            }
            #expect(try await run(line + ["read", editor, "word"]).output == text)
            #expect(try await run(line + ["read", editor, "list"]).output.contains(#""a\U202eb""#))
            try await PseudoTerminal(line + ["read", editor, "word"]).shows(#"a\U202eb"#)
        }
    }

    @Test func `called as defaults it speaks as macOS's`() async throws {
        try await Terminal.with { (terminal: Terminal) async throws in
            try FileManager.default.createSymbolicLink(
                atPath: terminal.file("defaults"), withDestinationPath: Terminal.program)
            func defaults(_ words: [String]) async throws -> ProgramResult {
                try await run(
                    ["env", "UBIQUITOUS_STORE_BUS=\(terminal.bus.address)", terminal.file("defaults")] + words)
            }
            func defaults(_ words: String...) async throws -> ProgramResult { try await defaults(words) }
            #expect(
                try await defaults("write", editor, "{ size = 14; names = (a, \"b c\"); data = <0a0b>; }").code == 0)
            #expect(
                try await defaults("read", editor).output
                    == "{\n    data = <0a0b>;\n    names =     (\n        a,\n        \"b c\"\n    );\n    size = 14;\n}"
            )
            // A whole dictionary replaces what was there.
            #expect(try await defaults("write", "com.example.other", "old", "1").code == 0)
            #expect(try await defaults("write", "com.example.other", "{ new = 2; }").code == 0)
            #expect(try await defaults("read", "com.example.other").output == "{\n    new = 2;\n}")
            #expect(try await defaults("delete", "com.example.other").code == 0)
            // A word without a type is a string, or a property list in old-style text, in containers too.
            let words = ["-array", "14", "true", "(1, b)", "-int", "3"]
            #expect(try await defaults(["write", editor, "mixed"] + words).code == 0)
            #expect(try await defaults("write", editor, "mixed", "-array-add", "15").code == 0)
            #expect(try await defaults("write", editor, "map", "-dict", "a", "1").code == 0)
            #expect(try await defaults("write", editor, "map", "-dict-add", "b", "{ c = 2; }").code == 0)
            let typed = try await terminal.ctl("defaults", "--json", "read", editor, "mixed")
            #expect(typed.output == #"["14","true",["1","b"],3,"15"]"#)
            let map = try await terminal.ctl("defaults", "--json", "read", editor, "map")
            #expect(map.output == #"{"a":"1","b":{"c":"2"}}"#)
            for key in ["mixed", "map"] { #expect(try await defaults("delete", editor, key).code == 0) }
            // It accepts a date as it prints one.
            let date = "2026-11-21 09:30:00 +0000"
            #expect(try await defaults("write", editor, "date", "-date", date).code == 0)
            #expect(try await defaults("read", editor, "date").output == date)
            let shown = try await terminal.ctl("defaults", "--json", "read", editor, "date")
            #expect(shown.output.contains("2026-11-21T09:30:00Z"))
            #expect(try await defaults("delete", editor, "date").code == 0)
            expect(try await defaults("write", "-currentHost", editor, "size"), 1, "-currentHost goes before the verb")
            #expect(try await defaults("write", editor, "flag", "-bool", "YES").code == 0)
            #expect(try await defaults("read", editor, "flag").output == "1")
            expect(
                try await defaults("read", editor, "none"), 1,
                "The domain/default pair of (\(editor), none) does not exist")
            #expect(try await defaults("write", "-g", "dark", "-bool", "true").code == 0)
            #expect(try await defaults("domains").output == "NSGlobalDomain, \(editor)")
            #expect(try await defaults("export", editor, terminal.file("out.plist")).code == 0)
            #expect(try await defaults("delete", editor).code == 0)
            #expect(try await defaults("import", editor, terminal.file("out.plist")).code == 0)
            #expect(try await defaults("read", editor, "size").output == "14")
            expect(try await defaults("frob"), 1, "There is no verb")
        }
    }

    @Test func `what programs add to an array and to a dictionary at once is all there`() async throws {
        try await Terminal.with { (terminal: Terminal) async throws in
            let numbers = (10..<30).map(String.init)
            let programs = try numbers.flatMap { number in
                [
                    try terminal.start("defaults", "write", editor, "list", "-array-add", number),
                    try terminal.start("defaults", "write", editor, "map", "-dict-add", number, "-int", number),
                ]
            }
            for program in programs { #expect(try await program.finish() == .code(0), "\(terminal.text("error"))") }
            let list = try await terminal.ctl("defaults", "read", editor, "list").output
            #expect(numbers.allSatisfy { list.contains("\"\($0)\"") }, "\(list)")
            let map = try await terminal.ctl("defaults", "read", editor, "map").output
            #expect(numbers.allSatisfy { map.contains("\"\($0)\":\($0)") }, "\(map)")
        }
    }

    @Test func `an app is found by its file or its name, and one that is not there is no domain`() async throws {
        try await Terminal.with { (terminal: Terminal) async throws in
            _ = try terminal.device.directory.makeDirectory("share/applications", mode: 0o755)
            try terminal.write("share/applications/\(editor).desktop", "[Desktop Entry]\nName=My Tool\n")
            for name in ["One", "Other"] {
                let text = "[Desktop Entry]\nName=Twice\n[Desktop Action new]\nName=New Window\n"
                try terminal.write("share/applications/org.example.\(name).desktop", text)
            }
            let variables = ["XDG_DATA_DIRS=" + terminal.file("share")]
            for (number, name) in [editor, "\(editor).desktop", "My Tool"].enumerated() {
                let written = try await terminal.ctl(
                    "defaults", "write", "-app", name, "size", "-int", "\(number)", variables: variables)
                #expect(written.code == 0, "\(written)")
                #expect(try await terminal.ctl("defaults", "read", editor, "size").output == "\(number)")
            }
            let twice = ["defaults", "delete", "-app", "Twice", "size"]
            expect(
                try await terminal.ctl(arguments: twice, variables: variables), 2, "org.example.One, org.example.Other")
            for name in ["Your Tool", "New Window", "../\(editor)", ""] {
                let written = try await terminal.ctl(
                    "defaults", "write", "-app", name, "size", "-int", "9", variables: variables)
                expect(written, 1, "There is no app named")
            }
            #expect(try await terminal.ctl("defaults", "domains").output == editor)
        }
    }

    @Test func `what an administrator decides is written, and said`() async throws {
        try await Terminal.with { (terminal: Terminal) async throws in
            try """
            <plist version="1.0"><dict><key>Forced</key><dict><key>\(editor)</key>
            <dict><key>size</key><integer>14</integer></dict></dict></dict></plist>
            """.write(toFile: terminal.device.managedDirectory + "/10.plist", atomically: true, encoding: .utf8)
            try await eventually("it is in force") {
                try await terminal.ctl("defaults", "explain", editor, "size").output.hasPrefix("forced")
            }
            let written = try await terminal.ctl("defaults", "write", editor, "size", "-int", "99")
            #expect(written.code == 0 && written.error.contains("Programs don't get this value of size"), "\(written)")
            let effective = ["defaults", "--effective", "--json", "read", editor]
            #expect(try await terminal.ctl(arguments: effective).output == #"{"size":14}"#)
            #expect(try await terminal.ctl(arguments: effective + ["size"]).output == "14")
            #expect(try await terminal.ctl("defaults", "read", editor, "size").output == "99")
            expect(try await terminal.ctl("defaults", "--effective", "delete", editor), 2, "is for \"read\"")
            #expect(try await terminal.ctl("defaults", "write", editor, "other", "-int", "99").remarks == "")
            // No warning for a removal, because programs could not get the value.
            let renamed = try await terminal.ctl("defaults", "rename", editor, "size", "width")
            #expect(renamed.code == 0 && renamed.remarks == "", "\(renamed)")
            let back = try await terminal.ctl("defaults", "rename", editor, "width", "size")
            #expect(back.code == 0 && back.error.contains("Programs don't get this value of size"), "\(back)")
            let deleted = try await terminal.ctl("defaults", "delete", editor, "size")
            #expect(deleted.code == 0 && deleted.remarks == "", "\(deleted)")
        }
    }

    @Test func `a key that roams is written here, and said, and read from the store where programs get it`()
        async throws
    {
        try await Terminal.with { (terminal: Terminal) async throws in
            try FileManager.default.createDirectory(
                atPath: terminal.file("data/ubiquitous-store/manifests.d"), withIntermediateDirectories: true)
            var manifest = ManifestText(notes, application: editor)
            manifest.ubiquitousDefaults = ["ui.*"]
            try terminal.write("data/ubiquitous-store/manifests.d/editor.plist", manifest.xml)
            let home = ["XDG_DATA_HOME=\(terminal.file("data"))"]
            for (key, roams) in [("ui.color", true), ("size", false)] {
                for words in [["write", editor, key, "red"], ["explain", editor, key], ["delete", editor, key]] {
                    let result = try await terminal.ctl(arguments: ["defaults"] + words, variables: home)
                    #expect(result.code == 0 && result.error.contains("\(key) roams") == roams, "\(result)")
                }
            }
            for key in ["ui.color", "size"] {
                try await terminal.store().set(key, .string("green"))
                expect(try await terminal.ctl("defaults", "write", editor, key, "red", variables: home), 0)
            }
            let effective = ["defaults", "--effective", "--json", "read", editor]
            let read = try await terminal.ctl(arguments: effective, variables: home)
            #expect(read.output == #"{"size":"red","ui.color":"green"}"# && read.remarks == "", "\(read)")
            let explained = try await terminal.ctl("defaults", "explain", editor, "ui.color", variables: home)
            #expect(explained.output == "synced store: green\n\(editor): red", "\(explained)")
        }
    }

    @Test func `a locked key is explained, with the value that the lock hides`() async throws {
        try await Terminal.with { (terminal: Terminal) async throws in
            expect(try await terminal.ctl("defaults", "write", editor, "update.url", "x"), 0)
            try locked("update.*").write(
                toFile: terminal.device.managedDirectory + "/50.plist", atomically: true, encoding: .utf8)
            try await eventually("the file counts") {
                try await terminal.ctl("defaults", "explain", editor, "update.url").error.contains("is locked")
            }
            let explained = try await terminal.ctl("defaults", "explain", editor, "update.url")
            #expect(explained.code == 0 && explained.output == "\(editor): x (hidden by the lock)", "\(explained)")
            let json = try await terminal.ctl("defaults", "--json", "explain", editor, "update.url").output
            #expect(json == #"[{"hidden":true,"layer":"\#(editor)","value":"x"}]"#, "\(json)")
        }
    }

    @Test func `a key that roams because an administrator says so is said to`() async throws {
        try await Terminal.with { (terminal: Terminal) async throws in
            try FileManager.default.createDirectory(
                atPath: terminal.file("data/ubiquitous-store/manifests.d"), withIntermediateDirectories: true)
            try terminal.write(
                "data/ubiquitous-store/manifests.d/editor.plist", ManifestText(notes, application: editor).xml)
            let home = ["XDG_DATA_HOME=\(terminal.file("data"))"]
            func remark(_ words: String...) async throws -> Bool {
                let result = try await terminal.ctl(arguments: ["defaults"] + words, variables: home)
                return result.error.contains("xx roams")
            }
            #expect(try await !remark("write", editor, "xx", "6"))
            try """
            <plist version="1.0"><dict><key>Ubiquitous</key><dict><key>\(editor)</key>
            <array><string>x*</string></array></dict></dict></plist>
            """.write(toFile: terminal.device.managedDirectory + "/50.plist", atomically: true, encoding: .utf8)
            try await eventually("the file counts") { try await remark("write", editor, "xx", "7") }
            #expect(try await remark("explain", editor, "xx"))
            #expect(try await remark("delete", editor, "xx"))
        }
    }

    @Test func `what is deleted already is no change, but for the program of that name`() async throws {
        try await Terminal.with { (terminal: Terminal) async throws in
            expect(try await terminal.ctl("defaults", "write", editor, "size", "14"), 0)
            for (words, changed) in [
                (["delete", editor, "size"], true), (["delete", editor, "size"], false),
                (["delete-all", editor, "size"], false), (["write", editor, "size", "15"], true),
                (["delete", editor], true), (["delete", editor], false),
            ] {
                let result = try await terminal.ctl2(["defaults", "--json"] + words)
                #expect(result.code == 0 && result.output == #"{"changed":\#(changed)}"#, "\(words) \(result)")
            }
        }
    }

    private func locked(_ pattern: String) -> String {
        """
        <plist version="1.0"><dict><key>Locked</key><dict><key>\(editor)</key>
        <array><string>\(pattern)</string></array></dict></dict></plist>
        """
    }

    @Test func `a file of managed settings is checked as the service reads it`() async throws {
        try await Terminal.with(started: false) { (terminal: Terminal) async throws in
            try terminal.write("good.plist", "<plist version=\"1.0\"><dict><key>Forced</key><dict/></dict></plist>")
            try terminal.write("bad.plist", "<plist version=\"1.0\"><dict><key>Force</key><dict/></dict></plist>")
            chmod(terminal.file("good.plist"), 0o644)
            chmod(terminal.file("bad.plist"), 0o644)
            #expect(try await terminal.ctl("defaults", "managed", "check", terminal.file("good.plist")).code == 0)
            expect(
                try await terminal.ctl("defaults", "managed", "check", terminal.file("bad.plist")), 2,
                "bad.plist: Force: this key is not known")
            let both = try await terminal.ctl(
                "defaults", "--json", "managed", "check", terminal.file("good.plist"), terminal.file("bad.plist"))
            #expect(both.code == 2 && both.error.isEmpty)
            #expect(both.output.hasPrefix("[{\"file\":"), "\(both.output)")
            #expect(both.output.contains("\"error\":\"Force: this key is not known"), "\(both.output)")
            for (name, text, words) in [
                ("empty.plist", "", "empty.plist: it is empty"),
                ("star.plist", locked("up*date"), "star.plist: Locked → \(editor): no key goes with \"up*date\""),
                ("none.plist", locked(""), "no key goes with \"\""),
            ] {
                try terminal.write(name, text)
                chmod(terminal.file(name), 0o644)
                expect(try await terminal.ctl("defaults", "managed", "check", terminal.file(name)), 2, words)
            }
            try terminal.write("good.plist", locked("update.*"))
            let good = try await terminal.ctl("defaults", "managed", "check", terminal.file("good.plist"))
            #expect(good.code == 0 && good.error.isEmpty, "\(good)")
            let names = "<array><string>root</string><string>nobody at all</string></array>"
            try terminal.write(
                "names.plist",
                "<plist version=\"1.0\"><dict><key>Users</key>\(names)<key>Groups</key>\(names)</dict></plist>")
            chmod(terminal.file("names.plist"), 0o644)
            let named = try await terminal.ctl("defaults", "managed", "check", terminal.file("names.plist"))
            #expect(named.code == 0 && named.output.contains("names.plist: right"), "\(named)")
            for word in ["user", "group"] {
                #expect(named.error.contains("this machine knows no \(word) \"nobody at all\""), "\(named)")
            }
            #expect(!named.error.contains("\"root\""), "\(named)")
            let json = try await terminal.ctl("defaults", "--json", "managed", "check", terminal.file("names.plist"))
            #expect(json.code == 0 && json.error.isEmpty && json.output.contains("\"notes\":[\"this"), "\(json)")
            try terminal.write("nobody.plist", "<plist version=\"1.0\"><dict><key>Users</key><array/></dict></plist>")
            chmod(terminal.file("nobody.plist"), 0o644)
            let nobody = try await terminal.ctl("defaults", "managed", "check", terminal.file("nobody.plist"))
            #expect(nobody.code == 0 && nobody.error.contains("nobody.plist: it applies to nobody"), "\(nobody)")
            expect(
                try await terminal.ctl("defaults", "managed", "check", ""), 2, "ubiquitousctl: \"\": it can't be opened"
            )
            let installed = "ubiquitous-store/managed.d"
            try FileManager.default.createDirectory(
                atPath: terminal.file(installed), withIntermediateDirectories: true)
            try terminal.write(installed + "/good.txt", locked("update.*"))
            chmod(terminal.file(installed + "/good.txt"), 0o644)
            expect(
                try await terminal.ctl("defaults", "managed", "check", terminal.file(installed + "/good.txt")), 2,
                "only files whose names end in .plist are read")
        }
    }
}

struct OldStyleTextTests {
    @Test func `what is printed is read again, as strings and data`() throws {
        let value: Value = .dictionary([
            "a": .string("b c"), "list": .array([.string("x"), .data([10, 255])]), "quote": .string("\"\\\n"),
            "empty": .array([]), "inner": .dictionary(["k k": .string("")]),
        ])
        #expect(try OldStyleText.value(OldStyleText.text(value)) == value)
    }

    @Test func `containers are laid out and quoted as on macOS`() throws {
        let tile: Value = .dictionary(["tile-data": .dictionary(["name": .string("en_US"), "GUID": .integer(17)])])
        #expect(
            OldStyleText.text(.dictionary(["apps": .array([tile, .string("Dock")]), "none": .array([])])) == """
                {
                    apps =     (
                                {
                            "tile-data" =             {
                                GUID = 17;
                                name = "en_US";
                            };
                        },
                        Dock
                    );
                    none =     (
                    );
                }
                """)
    }

    @Test func `a word has quotes inside of containers alone, and what macOS escapes is read`() throws {
        let numbers: [Value] = [.integer(-5), .real(-1.5), .date(0), .string("a b")]
        #expect(numbers.map { OldStyleText.text($0) } == ["-5", "-1.5", "2001-01-01 00:00:00 +0000", "a b"])
        #expect(
            OldStyleText.text(.array(numbers))
                == "(\n    \"-5\",\n    \"-1.5\",\n    \"2001-01-01 00:00:00 +0000\",\n    \"a b\"\n)")
        #expect(try OldStyleText.value(#""J\U00fcrgen \Ud83d\Ude00""#) == .string("J\u{fc}rgen \u{1F600}"))
    }

    @Test(arguments: [
        #""\U12""#, #""\Uxyzw""#, "{", "{a}", "{a = b", "(a", "(a b)", "<0", "<0g>", "\"a", "{a = b;} c", "(,)",
    ])
    func `what is broken is refused`(_ text: String) {
        #expect(throws: Failure.self) { try OldStyleText.value(text) }
    }

    @Test func `a plain word is a string`() throws {
        let tile: Value = .dictionary(["tile-data": .string("x")])
        #expect(try OldStyleText.value("<dict><key>tile-data</key><string>x</string></dict>") == tile)
        #expect(try OldStyleText.value("<array><integer>1</integer></array>") == .array([.integer(1)]))
        #expect(try OldStyleText.value("<true/>") == .boolean(true))
        #expect(try OldStyleText.value("<da7a>") == .data([0xDA, 0x7A]))
        #expect(throws: Failure.self) { try OldStyleText.value("<dict><key>a</key></dict>") }
        #expect(try OldStyleText.value("14") == .string("14") && OldStyleText.value("") == .string(""))
    }
}
