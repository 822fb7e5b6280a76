// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Testing
import UbiquitousStoreTesting

@testable import UbiquitousStore

/// An app in its own process: how it finds its store, and what remains when it ends.
@Suite(.serialized, .timeLimit(.minutes(30)))
struct AppProcessTests {
    @Test func `an app for Apple's systems finds its store by its manifest, and both ways of a colour`() async throws {
        try await Desk.with { desk in
            // As in a package, except for the directory.
            var manifest = ManifestText(notes)
            manifest.executables = [try ChildProcess.built("sample-app")]
            let manifests = try desk.device.directory.makeDirectory("data/ubiquitous-store/manifests.d")
            try Data(manifest.xml.utf8).write(to: URL(filePath: manifests + "/notes.plist"))

            let other = try await desk.otherProcess()
            let app = try desk.startApp("choose", "2", variables: ["XDG_DATA_HOME": desk.path("data")])
            try await eventually("its colour is in the store") { try await other.value("backgroundColor") == 2 }
            try await other.set("backgroundColor", 3)
            try await eventually("it takes the colour that was chosen elsewhere: \(desk.appError)") {
                desk.appOutput.hasSuffix("ready\ncolour 3\n")
            }
            #expect(app.exit == nil)
        }
    }

    @Test func `an app for Apple's systems takes the colour that was chosen in it on another device`() async throws {
        try await Desk.with { desk in
            let folder = try desk.device.directory.makeDirectory("shared")
            try await Desk.with { laptop in
                for device in [desk, laptop] { try await device.join(folder) }
                let here = try desk.startApp()
                try await eventually("it follows: \(desk.appError)") { desk.appOutput == "ready\n" }
                let there = try laptop.startApp("choose", "1")
                try await eventually("the colour comes") { desk.appOutput == "ready\ncolour 1\n" }
                #expect(here.exit == nil && there.exit == nil)
            }
        }
    }

    @Test func `literals are stored as the types that they have on Apple's systems`() async throws {
        try await Desk.with { desk in
            let end = try await desk.runApp("literals")
            #expect(end == .code(0))
            let values = try await desk.otherProcess().snapshot().values
            #expect(
                values == [
                    "integer": 7, "real": .real(7.5), "boolean": true, "string": "text", "array": .array([1, 2]),
                    "dictionary": .dictionary(["a": 1]), "float": .real(0.5),
                ])
        }
    }

    @Test func `an app that ends at once leaves what it wrote, with synchronize and without`() async throws {
        try await Desk.with { desk in
            let other = try await desk.otherProcess()
            for _ in 0..<5 {
                // An app waits for at most a tenth of a second when it ends, and for a second to synchronize. A busy
                // machine may take longer, so this retries.
                try await other.remove("key")
                try await eventually("the write is there") {
                    let end = try await desk.runApp("exit")
                    #expect(end == .code(0))
                    return try await other.value("key") == "last"
                }
                try await other.remove("key")
                try await eventually("it is synchronized") { try await desk.runApp("synchronize") == .code(0) }
                #expect(try await other.value("key") == "last")
            }
        }
    }

    @Test func `a clock that is set back makes a read wait no longer`() async throws {
        try await Desk.with { desk in
            desk.device.signal(SIGSTOP)
            let programs = URL(filePath: try ChildProcess.built("sample-app")).deletingLastPathComponent()
            let clock = programs.appending(path: "libShiftedClock.so").path
            let app = try desk.startApp(
                "read",
                variables: ["UBIQUITOUS_STORE_IDENTIFIER": notes, "LD_PRELOAD": clock, "SHIFTED_CLOCK": "3600"])
            #expect(try await app.finish() == .code(0) && desk.appOutput == "nothing\n", "\(desk.appError)")
        }
    }

    @Test func `an app ends though the service does not answer`() async throws {
        try await Desk.with { desk in
            desk.device.signal(SIGSTOP)
            let end = try await desk.runApp("exit")
            #expect(end == .code(0))
        }
    }

    @Test func `an app ends though the service can't take its write now, and its synchronize says no`() async throws {
        let directory = try TemporaryDirectory()
        let settings = directory.path + "/settings.conf"
        try Data("[User]\nStores=1\n".utf8).write(to: URL(filePath: settings))
        let manifests = [ManifestText(notes), ManifestText("org.example.First")]
        try await Desk.with(manifests: manifests, arguments: ["--configuration", settings]) { desk in
            let first = try await desk.otherProcess("org.example.First")
            try await first.set("key", 1)
            for (argument, code) in [("synchronize", Int32(1)), ("exit", 0)] {
                let end = try await desk.runApp(argument)
                #expect(end == .code(code), "\(argument)")
            }
        }
    }

    @Test func `a forked child that opens a store gets an error`() async throws {
        try await Desk.with { desk in
            let end = try await desk.runApp("fork-open")
            #expect(end == .code(0) && desk.appOutput == "child opens: serviceUnavailable\n", "\(desk.appError)")
        }
    }

    @Test func `a forked child reads, and neither hangs nor disturbs its parent`() async throws {
        try await Desk.with { desk in
            let end = try await desk.runApp("fork")
            #expect(end == .code(0) && desk.appOutput == "child reads parent\nchild synchronizes: false\n")
            let value = try await desk.otherProcess().value("key")
            #expect(value == "parent again")
        }
    }

    @Test func `an app that no manifest declares starts, its synchronize says no, and its log why`() async throws {
        try await Desk.with(manifests: []) { desk in
            // The library has tried twice by then, unless the machine is so busy that this took more than a second.
            try await eventually("its library is answered") {
                try? FileManager.default.removeItem(atPath: desk.path("app.error"))
                let end = try await desk.runApp("synchronize")
                #expect(end == .code(1))
                return !desk.appError.isEmpty
            }
            #expect(
                desk.appError == """
                    UbiquitousStore: The store "org.example.Notes" can't be opened, and what the app writes is not \
                    stored. No installed manifest declares the identifier "org.example.Notes" for this caller. Install \
                    one, or open the identifier that the app's manifest declares. (notEntitled)

                    """)
        }
    }
}

extension Desk {
    /// Returns the path of one of the test's files.
    func path(_ name: String) -> String { device.directory.path + "/" + name }

    /// The apps' output.
    var appOutput: String { text("app.output") }
    var appError: String { text("app.error") }

    private func text(_ name: String) -> String {
        String(decoding: FileManager.default.contents(atPath: path(name)) ?? Data(), as: UTF8.self)
    }

    /// Starts the sample app, by default with the usual store in its environment.
    func startApp(
        _ arguments: String..., variables: [String: String] = ["UBIQUITOUS_STORE_IDENTIFIER": notes]
    ) throws -> ChildProcess {
        var environment = ProcessInfo.processInfo.environment.merging(variables) { $1 }
        environment["UBIQUITOUS_STORE_BUS"] = bus.address
        return try ChildProcess(
            [try ChildProcess.built("sample-app")] + arguments, environment: environment,
            output: (path("app.output"), path("app.error")))
    }

    /// Runs the sample app on the usual store until it ends.
    func runApp(_ argument: String) async throws -> ChildProcess.Exit {
        try await startApp(argument).finish()
    }
}
