// SPDX-License-Identifier: Apache-2.0

import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// What an app in a flatpak's scope may do with defaults domains.
@BusActor
@Suite(.timeLimit(.minutes(30)), .enabled(if: Users.areSeveral, Users.needsRoot), .enabled(if: SandboxScope.isPossible))
struct DomainSandboxTests {
    private let game = "org.example.Game"
    private let uid = Users.client

    private func domain(_ name: String) throws -> (String, String) {
        (try BusNames.domainPath(uid: uid, domain: name), BusNames.domainInterface)
    }

    private var defaults: (String, String) { (BusNames.defaultsPath(uid: uid), BusNames.defaultsInterface) }

    private func set(_ app: SandboxScope, _ name: String) async throws -> ProgramResult {
        try await app.call(domain(name), "Apply", "a{sv}asa{sv}", "1", "key", "i", "1", "0", "0")
    }

    @Test func `a flatpak has its own domains and those of its groups, and reads the global one`() async throws {
        try await withMachine {
            var manifest = ManifestText(game)
            manifest.groups = ["group.example"]
            $0.manifests = [manifest]
        } _: { machine in
            for name in ["NSGlobalDomain", "org.example.Bank"] {
                try await machine.client().domain(name).set("secret", .integer(1))
            }
            let app = try SandboxScope(game, on: machine)
            for name in [game, game + ".part", "group.example"] {
                #expect(try await set(app, name).exit == .code(0), "\(name)")
            }
            let global = try await set(app, "NSGlobalDomain")
            #expect(global.error.contains("Access denied"), "\(global.error)")
            #expect(try await app.call(domain("NSGlobalDomain"), "GetValue", "s", "secret").output == "v x 1")
            for name in ["org.example.Bank", "org.example.Games"] {
                #expect(try await set(app, name).error.contains("Unknown object"), "\(name)")
            }
            let listed = try await app.call(defaults, "ListDomains", "t", "0").output
            #expect(!listed.contains("Bank") && listed.contains(#""group.example""#), "\(listed)")
            let opened = try await app.call(
                defaults, "OpenDomains", "asa{sv}", "3", game, "NSGlobalDomain", "org.example.Bank", "0"
            ).output
            #expect(opened.hasPrefix("aa{sv} 2 ") && opened.contains(#""writable" b false"#), "\(opened)")
            for name in ["NSGlobalDomain", "org.example.Bank"] {
                let removed = try await app.call(defaults, "RemoveDomain", "st", name, "0")
                #expect(removed.error.contains("Access denied"), "\(removed.error)")
            }
        }
    }

    @Test func `a flatpak has 16 domains, and programs outside of sandboxes have more`() async throws {
        try await withMachine { machine in
            let app = try SandboxScope(game, on: machine)
            let client = try machine.client()
            for index in 0..<16 { try await client.domain("\(game).d\(index)").set("key", .integer(1)) }
            let refused = try await set(app, game)
            #expect(refused.error.contains("The app has 16 domains"), "\(refused.error)")
            #expect(try await set(app, game + ".d0").exit == .code(0))
            try await client.domain(game).set("key", .integer(1))
            for index in 0..<2 { try await client.defaults.remove("\(game).d\(index)") }
            #expect(try await set(app, game + ".d1").exit == .code(0))
        }
    }

    @Test func `a flatpak's domains hold 16 MiB together`() async throws {
        try await withMachine { machine in
            let app = try SandboxScope(game, on: machine)
            let client = try machine.client()
            let mebibyte = Value.data([UInt8](repeating: 1, count: 1 << 20))
            for index in 0..<4 {
                try await client.domain("\(game).d\(index)").apply((0..<4).map { ("\($0)", mebibyte) })
            }
            let refused = try await set(app, game)
            #expect(refused.error.contains("a sandboxed app may have 16777216"), "\(refused.error)")
            try await client.domain(game + ".d0").apply(removing: ["0"])
            #expect(try await set(app, game).exit == .code(0))
        }
    }
}
