// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import StoreDaemon

struct DomainAccessTests {
    private func access(_ engine: CallerIdentity.Engine, _ app: String, to domain: String) -> DomainAccess {
        let caller = CallerIdentity(engine: engine, applicationIdentifier: app)
        return DomainAccess.of(caller, to: domain, groups: ["group.example"])
    }

    @Test func `an ordinary program has every domain, and a sandbox that isn't known none`() {
        for domain in ["NSGlobalDomain", "org.example.Game", "group.example", "other"] {
            #expect(access(.host, "", to: domain) == .write)
            // A snap is an unknown sandbox.
            #expect(access(.unknown, "org.example.Game", to: domain) == .none)
        }
    }

    @Test func `names are compared by their bytes`() {
        #expect(access(.flatpak, "caf\u{e9}", to: "cafe\u{301}") == .none)
        #expect(access(.flatpak, "caf\u{e9}", to: "cafe\u{301}.part") == .none)
        let caller = CallerIdentity(engine: .flatpak, applicationIdentifier: "org.example.Game")
        #expect(DomainAccess.of(caller, to: "cafe\u{301}", groups: ["caf\u{e9}"]) == .none)
    }

    @Test func `an app in a flatpak has its own domains, its groups', and reads the global one`() {
        let rights: [(String, DomainAccess)] = [
            ("org.example.Game", .write), ("org.example.Game.part", .write), ("group.example", .write),
            ("NSGlobalDomain", .read), ("org.example.Games", .none), ("org.example", .none),
            ("org.example.game", .none), ("group.example.part", .none), ("nsglobaldomain", .none),
        ]
        for (domain, right) in rights {
            #expect(access(.flatpak, "org.example.Game", to: domain) == right, "\(domain)")
            #expect(access(.flatpak, "", to: domain) == .none, "\(domain)")
        }
    }
}
