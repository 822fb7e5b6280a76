// SPDX-License-Identifier: Apache-2.0

import AppManifest
import Foundation
import Testing

@testable import StoreDaemon

struct ManifestSetTests {
    private func manifest(
        _ identifier: String,
        app: String,
        team: String? = nil,
        local: [String] = []
    ) throws -> Manifest {
        var entries: [String: Any] = [
            "com.apple.developer.ubiquity-kvstore-identifier": identifier, "application-identifier": app,
            "org.example.UbiquitousStore.local-keys": local,
        ]
        entries["com.apple.developer.team-identifier"] = team
        let data = try PropertyListSerialization.data(fromPropertyList: entries, format: .binary, options: 0)
        return try Manifest(propertyList: Array(data))
    }

    private func resolve(_ manifests: Manifest...) -> (set: ManifestSet, problems: [String]) {
        ManifestSet.resolve(manifests.enumerated().map { (source: "/m/\($0.offset).plist", manifest: $0.element) })
    }

    @Test func `manifests of different identifiers are all in force`() throws {
        let (set, problems) = resolve(try manifest("b", app: "x"), try manifest("a", app: "x"))
        #expect(set.identifiers == ["a", "b"] && problems.isEmpty)
        #expect(set.identifiers(ofApplication: "x") == ["a", "b"])
        #expect(set.identifiers(ofApplication: "y").isEmpty)
        #expect(set.declares("a") && !set.declares("c"))
    }

    @Test func `apps of one team share an identifier`() throws {
        let (set, problems) = resolve(
            try manifest("s", app: "x", team: "T", local: ["k"]),
            try manifest("s", app: "y", team: "T", local: ["l*"])
        )
        #expect(set.declares("s") && problems.isEmpty)
        #expect(set.identifiers(ofApplication: "x") == ["s"] && set.identifiers(ofApplication: "y") == ["s"])
    }

    @Test func `one app that is installed twice shares an identifier with itself`() throws {
        let (set, problems) = resolve(try manifest("s", app: "x", team: "T"), try manifest("s", app: "x"))
        #expect(set.declares("s") && problems.isEmpty)
    }

    @Test func `two apps without a team get nothing of an identifier that both claim`() throws {
        let (set, problems) = resolve(
            try manifest("s", app: "x"),
            try manifest("s", app: "y"),
            try manifest("t", app: "z")
        )
        #expect(set.identifiers == ["t"])
        #expect(problems.count == 1)
        #expect(problems.first?.contains("/m/0.plist, /m/1.plist") == true)
        #expect(problems.first?.contains("identifier s ") == true)
    }

    @Test func `two apps of two teams get nothing of it`() throws {
        let (set, _) = resolve(try manifest("s", app: "x", team: "T"), try manifest("s", app: "y", team: "U"))
        #expect(!set.declares("s"))
    }

    @Test func `a team and no team are two`() throws {
        let (set, _) = resolve(try manifest("s", app: "x", team: "T"), try manifest("s", app: "y"))
        #expect(!set.declares("s"))
    }
}
