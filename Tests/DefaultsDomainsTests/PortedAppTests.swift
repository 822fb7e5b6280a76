// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import SDBus
import Testing
import UbiquitousStoreTesting

/// Programs that were written for macOS, and compile here with one added line: Tests/DefaultsApp.
@Suite(.serialized, .timeLimit(.minutes(30)))
struct PortedAppTests {
    @Test func `a reader's settings are registered, set, there at the next start, and reset`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let first = try await desk.run("reader")
            #expect(first.exit == .code(0), "\(desk.error)")
            #expect(first.output == "newestFirst system true no feed 1.0 1800 sponsored never no folder 0")
            // The font scale is set in a shared object; the selected feed and six settings in the standard one.
            let changed = try await desk.run("reader", "change")
            #expect(changed.output == "8", "\(desk.error)")
            let second = try await desk.run("reader")
            #expect(second.output == "byFeed dark false news 1.25 1800 sponsored,advert once Feeds 3")
            let overridden = try await desk.run("reader", "show", "-RefreshInterval", "60", "-SortOrder", "oldestFirst")
            #expect(overridden.output == "oldestFirst dark false news 1.25 60 sponsored,advert once Feeds 3")
            _ = try await desk.run("reader", "reset")
            #expect(try await desk.run("reader").output.hasPrefix("newestFirst system true no feed 1.25 1800"))
        }
    }

    @Test func `a reader that runs sees every change by a second process, and what an administrator forces`()
        async throws
    {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let app = try desk.start(["reader", "follow"])
            try await eventually("it begins: \(desk.error)") { desk.output == "interval -1 1800" }
            let other = try await desk.other()
            for interval in [60, 61, 62] as [Int64] {
                try await other.set("RefreshInterval", .integer(interval))
                try await eventually("it follows") { desk.output.hasSuffix("\(interval)") }
            }
            try await other.set("MutedWords", .array([.string("a"), .string("b")]))
            try await eventually("an array, too") { desk.output.hasSuffix("muted a,b") }
            try """
            <plist version="1.0"><dict><key>Forced</key><dict><key>\(editor)</key>
            <dict><key>RefreshInterval</key><integer>900</integer></dict></dict></dict></plist>
            """.write(
                toFile: desk.device.managedDirectory + "/10-reader.plist", atomically: true, encoding: .utf8)
            try await eventually("what is forced") { desk.output.hasSuffix("interval 62 900") }
            #expect(app.exit == nil)
        }
    }

    @Test func `the sample's colour is kept in both places, and follows another device`() async throws {
        var manifest = ManifestText("org.example.Prefs", application: editor)
        manifest.executables = [try ChildProcess.built("defaults-app")]
        var options = Device.Options()
        options.manifests = [manifest]
        try await DefaultsDesk.with(options) { (desk: DefaultsDesk) async throws in
            let variables = ["UBIQUITOUS_STORE_IDENTIFIER": "org.example.Prefs"]
            #expect(try await desk.run("colour", "2", variables: variables).output == "colour 0", "\(desk.error)")
            let store = try await BusClient(desk.bus).store("org.example.Prefs")
            #expect(try await store.value("backgroundColor") == .integer(2))
            let app = try desk.start(["colour"], variables: variables)
            try await eventually("it has the colour: \(desk.error)") { desk.output == "colour 2" }
            try await store.set("backgroundColor", .integer(3))
            try await eventually("it follows") { desk.output.hasSuffix("colour 3") }
            try await eventually("its own settings, too") {
                try await desk.other().snapshot().values["backgroundColor"] == .integer(3)
            }
            // A value that is no colour changes nothing.
            try await store.set("backgroundColor", .integer(9))
            try await store.set("backgroundColor", .integer(1))
            try await eventually("the next one") { desk.output.hasSuffix("colour 1") }
            #expect(app.exit == nil && !desk.output.contains("9"))
        }
    }
}
