// SPDX-License-Identifier: Apache-2.0

import Glibc
import PropertyList
import Testing
import UbiquitousStoreTesting

@Suite struct WritingTests {
    @Test func `a check says what would change, and changes nothing`() async throws {
        try await Terminal.with { terminal in
            let store = try await terminal.store()
            try await store.set("theme", .string("dark"))
            #expect(
                try await terminal.ctl("set", "--check", "theme", "light").output
                    == "would set theme = light (now dark)")
            #expect(try await terminal.ctl("set", "--check", "size", "12").output == "would set size = 12")
            #expect(try await terminal.ctl("set", "--check", "theme", "dark").output == "nothing would change")
            #expect(try await terminal.ctl("remove", "theme", "nothing", "--check").output == "would remove theme")
            let refused = try await terminal.ctl(
                "set", "--check", "large", "-", input: String(repeating: "x", count: 1_048_577))
            expect(refused, 3, "\"large\" can't be stored")
            #expect(try await store.everything() == ["theme": .string("dark")])
        }
    }

    @Test func `what is so already is no change, and says so in JSON`() async throws {
        try await Terminal.with { terminal in
            let store = try await terminal.store()
            #expect(
                try await terminal.ctl("set", "--json", "size", "12").output
                    == #"{"changed":true,"changes":[{"key":"size","new":12}]}"#)
            let generation = try await store.generation()
            #expect(try await terminal.ctl("set", "--json", "size", "12").output == #"{"changed":false,"changes":[]}"#)
            expect(try await terminal.ctl("remove", "nothing"), 0)
            #expect(try await store.generation() == generation)
        }
    }

    @Test func `what comes from standard input is text whatever it looks like, if that is said`() async throws {
        try await Terminal.with { terminal in
            let store = try await terminal.store()
            for text in ["12", "true", "{ broken", "-int", "", "two\nlines"] {
                expect(try await terminal.ctl("set", "key", "--string", "-", input: text + "\n"), 0)
                #expect(try await store.value("key") == .string(Text(text)))
                expect(try await terminal.ctl("set", "--string", "key", text + "x"), 0)
                #expect(try await store.value("key") == .string(Text(text + "x")))
            }
            expect(try await terminal.ctl("set", "key", "-", input: "12\n"), 0)
            #expect(try await store.value("key") == .integer(12))
            for text in ["-n", "--json", "--check", "--store", "--help", "-int", "--"] {
                expect(try await terminal.ctl("set", "key", "--string", "--", text), 0)
                #expect(try await store.value("key") == .string(Text(text)))
            }
            expect(try await terminal.ctl("set", "key", "--", "-5"), 0)
            #expect(try await store.value("key") == .integer(-5))
            expect(try await terminal.ctl("set", "key", "--", "-5", "--json"), 2, "\"--json\" follows the value")
            expect(try await terminal.ctl("set", "key", "12", "--string"), 2, "--string goes before the value.")
            expect(
                try await terminal.ctl("set", "key", "12", "--string", variables: ["LC_ALL=de_DE.UTF-8"]), 2,
                "--string steht vor dem Wert.")
        }
    }

    @Test func `a list shows every key, quoted where it could be mistaken`() async throws {
        try await Terminal.with { terminal in
            let store = try await terminal.store()
            try await store.apply(["b": .integer(1), "a key": .string("x"), "A": .boolean(false)])
            #expect(try await terminal.ctl("list").output == "A = false\n\"a key\" = x\nb = 1")
            #expect(try await terminal.ctl("list", "--keys").output == "A\n\"a key\"\nb")
            #expect(try await terminal.ctl("list", "--json").output == #"{"A":false,"a key":"x","b":1}"#)
        }
    }

    @Test func `an earlier value comes back`() async throws {
        try await Terminal.with { terminal in
            let store = try await terminal.store()
            for theme in ["dark", "light", "blue"] as [Text] { try await store.set("theme", .string(theme)) }
            let history = try await terminal.ctl("history", "theme").output.split(separator: "\n")
            #expect(history.count == 2)
            #expect(history.first?.hasPrefix("1  ") == true && history.first?.hasSuffix("light") == true)
            #expect(
                try await terminal.ctl("restore", "theme", "2", "--check").output == "would set theme = dark (now blue)"
            )
            expect(try await terminal.ctl("restore", "theme", "2"), 0)
            #expect(try await store.value("theme") == .string("dark"))
            expect(try await terminal.ctl("restore", "theme", "9"), 1, "no number 9")
            expect(try await terminal.ctl("restore", "theme", "0"), 2, "numbered from 1")
            expect(try await terminal.ctl("history", "nothing"), 1, "no earlier values of \"nothing\"")
            let none = try await terminal.ctl("history", "--json", "nothing")
            #expect(none.code == 1 && none.output == "[]" && none.error.contains("no earlier values"), "\(none)")
        }
    }

    @Test func `root acts for a user, whether logged in or not`() async throws {
        // A session bus admits only one user and root.
        let policy = repositoryFile("dbus/org.example.UbiquitousStore.conf")
        try await Terminal.with(.system(policy: policy, serviceUser: geteuid())) { terminal in
            if try await run(["id", "-u"]).output != "0" {
                expect(try await terminal.ctl("get", "--user", "root", "theme"), 3, "Only root may act")
                return
            }
            expect(try await terminal.ctl("set", "--user", "nobody", "theme", "dark"), 0)
            #expect(try await terminal.ctl("get", "--user", "65534", "theme").output == "dark")
            #expect(try await terminal.ctl("get", "theme").code == 1)
            #expect(try await terminal.ctl("stores", "--user", "nobody").output == notes)
            #expect(try await terminal.ctl("usage", "--user", "nobody", "--json").output.contains("\"keys\":1"))
            let remove = ["stores", "remove", notes, "--user", "nobody", "--json"]
            #expect(try await terminal.ctl2(remove).output == #"{"changed":true}"#)
            #expect(try await terminal.ctl("stores", "--user", "nobody").output == "")
            #expect(try await terminal.ctl2(remove).output == #"{"changed":false}"#)

            // Root sets up a user who has no data yet, but not one who doesn't exist.
            let signIn = ["account", "sign-in", "--no-create", "webdav://127.0.0.1:1/x"]
            let provisioned = try await terminal.ctl2(signIn + ["--user", "daemon"])
            #expect(provisioned.code == 4, "the account is there, and the server isn't: \(provisioned)")
            for line in [["set", "theme", "dark"], ["list"], ["stores"], ["status"], ["account", "devices"], signIn] {
                for user in ["4242", "no-such-user"] {
                    let result = try await terminal.ctl2(line + ["--user", user])
                    expect(result, 2, "There is no user \"\(user)\" on this machine.")
                }
            }
            #expect(try await terminal.ctl("doctor", "--user", "4242").output.contains("WRONG  account: none"))
            for command in ["status", "stores"] {
                expect(try await terminal.ctl(command, "--everybody", "--user", "root"), 2, "leave one of them out")
            }
            let users = try await terminal.ctl("status", "--everybody", "--json")
            #expect(users.output.contains(#""user":"nobody""#) && !users.output.contains("4242"), "\(users)")
            let metrics = try await terminal.ctl("metrics").output
            #expect(metrics.contains("ubiquitous_store_accounts{state=\"signed-out\"} 3"), "\(metrics)")
            #expect(metrics.hasSuffix("# EOF") && !metrics.contains(notes))
            try await Self.checkFormat(metrics, terminal)
        }
    }

    /// Checks metrics with prometheus_client's strict parser, if it is installed.
    private static func checkFormat(_ metrics: String, _ terminal: Terminal) async throws {
        let parser = """
            import sys
            from prometheus_client.openmetrics.parser import text_string_to_metric_families as families
            print(len(list(families(open(sys.argv[1]).read()))))
            """
        guard try await run(["/usr/bin/python3", "-c", "import prometheus_client"]).exit == .code(0) else {
            return print("NOT TESTED: metrics with prometheus_client, which isn't installed here")
        }
        try terminal.write("metrics", metrics + "\n")
        let result = try await run(["/usr/bin/python3", "-c", parser, terminal.file("metrics")])
        #expect(result.exit == .code(0) && (Int(result.output) ?? 0) >= 7, "\(result)")
    }
}
