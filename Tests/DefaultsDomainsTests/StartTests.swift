// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Testing
import UbiquitousStoreTesting

/// How many messages an app with settings sends when it starts.
@Suite(.timeLimit(.minutes(30)))
struct StartTests {
    /// A message as `busctl monitor` prints it.
    private struct Seen {
        let type, sender, interface, member: String
        let strings: [String]

        init?(_ line: Substring) {
            guard let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)),
                let fields = object as? [String: Any]
            else { return nil }
            func text(_ name: String) -> String { fields[name] as? String ?? "" }
            (type, sender, interface, member) = (text("type"), text("sender"), text("interface"), text("member"))
            strings = (fields["payload"] as? [String: Any])?["data"] as? [String] ?? []
        }
    }

    /// Runs a program, and returns the calls that it made until it left the bus, with their interfaces.
    private func calls(_ desk: DefaultsDesk, _ words: [String]) async throws -> [String] {
        let log = desk.device.directory.path + "/messages"
        func text(_ path: String) -> String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }
        let monitor = try ChildProcess(
            ["busctl", "--address=\(desk.bus.address)", "--json=short", "monitor"], output: (log, log + ".error"))
        try await eventually("the monitor listens") { text(log + ".error").contains("Monitoring") }
        let exit = try await desk.start(words).finish()
        #expect(exit == .code(0), "\(desk.error)")
        var found: [String] = []
        try await eventually("the program is gone from the bus: \(text(log + ".error"))") {
            let messages = text(log).split(separator: "\n").compactMap(Seen.init)
            let hello = messages.first { $0.type == "method_call" && $0.member == "Hello" }
            guard let app = hello?.sender else { return false }
            found = messages.filter { $0.type == "method_call" && $0.sender == app }.map {
                "\($0.interface.split(separator: ".").last ?? "").\($0.member)"
            }
            return messages.contains { $0.member == "NameOwnerChanged" && $0.strings == [app, app, ""] }
        }
        monitor.kill()
        return found
    }

    @Test func `an app gets all its settings with one call of the service`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            try await desk.other().set("name", .string("Ada"))
            let calls = try await calls(desk, ["read", "name"])
            #expect(desk.output == "Ada")
            // The calls to the bus that every client of the service makes, and one more.
            #expect(
                calls == ["DBus.Hello", "DBus.AddMatch", "DBus.GetNameOwner", "DBus.AddMatch", "Defaults.OpenDomains"])
        }
    }
}
