// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import Testing
import UbiquitousStoreTesting

@Suite struct WatchTests {
    @Test(arguments: ["watch", "defaults watch org.example.Editor"])
    func `it ends when nobody reads what it prints`(command: String) async throws {
        try await Terminal.with { terminal in
            let result = try await terminal.line("{ timeout 60 ubiquitousctl \(command); echo $? >&2; } | true")
            #expect(result.error == "141", "\(result)")
        }
    }

    @Test(arguments: [
        ("watch", "set size"), ("defaults watch org.example.Editor", "defaults write org.example.Editor size"),
    ])
    func `it ends when what it prints can't be written`(watch: String, write: String) async throws {
        try await Terminal.with { terminal in
            let result = try await terminal.line(
                """
                ubiquitousctl \(watch) >/dev/full & watch=$!
                n=0; while kill -0 $watch 2>/dev/null && [ $((n += 1)) -lt 500 ]; do ubiquitousctl \(write) -int $n; done
                kill $watch 2>/dev/null; wait $watch; echo $?
                """)
            #expect(result.output == "3" && result.error.contains("can't be written to"), "\(result)")
        }
    }

    @Test func `a change is printed as it happens, and the service's restart is survived`() async throws {
        try await Terminal.with { terminal in
            let watch = try terminal.start("watch", "--initial", "theme", "size")
            let store = try await terminal.store()
            try await store.set("theme", .string("dark"))
            try await eventually("the first value") { terminal.text("output").hasPrefix("theme = dark\n") }
            try await store.set("other", .integer(1))
            try await store.remove("theme")
            try await eventually("the removal") { terminal.text("output").hasSuffix("theme removed\n") }
            terminal.device.kill()
            try await eventually("the end of the service is noticed") { terminal.text("error").contains("has ended") }
            try await terminal.device.start()
            let again = try await terminal.store()
            try await again.set("size", .integer(12))
            try await eventually("the value after the restart") { terminal.text("output").hasSuffix("size = 12\n") }
            #expect(terminal.text("output") == "theme = dark\ntheme removed\nsize = 12\n")
            watch.send(SIGINT)
            #expect(try await watch.finish() == .signal(SIGINT))
        }
    }

    @Test func `changes of a domain are printed as they happen, and a restart is survived`() async throws {
        try await Terminal.with { terminal in
            func write(_ key: String, _ value: String) async throws {
                let written = try await terminal.ctl(
                    arguments: ["defaults", "write", "org.example.Editor", key, "-int", value])
                #expect(written.code == 0)
            }
            let watch = try terminal.start("defaults", "watch", "org.example.Editor", "size")
            // Once the program prints anything, it has subscribed.
            var number = 0
            try await eventually("the program watches") {
                number += 1
                try await write("size", "\(number)")
                return terminal.text("output").contains("size = ")
            }
            try await write("other", "1")
            try await write("size", "100")
            try await eventually("the change") { terminal.text("output").hasSuffix("size = 100\n") }
            terminal.device.kill()
            try await eventually("the end of the service is noticed") { terminal.text("error").contains("has ended") }
            try await terminal.device.start()
            _ = try await terminal.ctl(arguments: ["defaults", "delete", "org.example.Editor", "size"])
            try await eventually("the removal") { terminal.text("output").hasSuffix("size removed\n") }
            #expect(!terminal.text("output").contains("other"))
            watch.send(SIGINT)
            #expect(try await watch.finish() == .signal(SIGINT))
        }
    }

    @Test func `changes are objects of JSON with the reason`() async throws {
        try await Terminal.with { terminal in
            let watch = try terminal.start("watch", "--json", "--initial")
            let store = try await terminal.store()
            // This may come before or after the subscription. Once the program prints anything, it has subscribed.
            try await store.set("first", .boolean(true))
            try await eventually("the program watches") { terminal.text("output").contains("first") }
            try await store.set("theme", .string("dark"))
            let line = #"{"key":"theme","reason":"local-change","value":"dark"}"#
            try await eventually("the change") { terminal.text("output").contains(line + "\n") }
            terminal.bus.end()
            #expect(try await watch.finish() == .code(4))
        }
    }
}
