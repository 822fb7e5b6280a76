// SPDX-License-Identifier: Apache-2.0

import Foundation
import SDBus
import Testing
import UbiquitousStoreTesting

@testable import UbiquitousStore

struct StorePlaceTests {
    private func manifest(_ identifier: String, executables: [String]) throws -> Data {
        try PropertyListSerialization.data(
            fromPropertyList: [
                "com.apple.developer.ubiquity-kvstore-identifier": "$(TeamIdentifierPrefix)\(identifier)",
                "com.apple.developer.team-identifier": "TEAM",
                "application-identifier": identifier, "org.example.UbiquitousStore.executables": executables,
            ], format: .xml, options: 0)
    }

    private var thisProgram: String {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    }

    private func identifier(
        _ manifests: [String: Data], environment: [String: String] = [:], named: String? = nil
    ) throws -> String {
        let directory = try TemporaryDirectory()
        for (name, data) in manifests { try data.write(to: URL(filePath: "\(directory.path)/\(name)")) }
        return StorePlace(identifier: named, environment: environment, manifestDirectories: [directory.path]).identifier
    }

    @Test func `the manifest that names this program says which store is its`() throws {
        let manifests = [
            "other.plist": try manifest("org.example.Other", executables: ["/usr/bin/true"]),
            "own.plist": try manifest("org.example.Own", executables: ["/usr/bin/false", thisProgram]),
        ]
        #expect(try identifier(manifests) == "TEAM.org.example.Own")
    }

    @Test func `a link to the program is the program`() throws {
        let directory = try TemporaryDirectory()
        let link = directory.path + "/program"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: thisProgram)
        let own = try manifest("org.example.Own", executables: [link])
        #expect(try identifier(["own.plist": own]) == "TEAM.org.example.Own")
    }

    @Test func `the environment goes before the manifest, and the app before both`() throws {
        let manifests = ["own.plist": try manifest("org.example.Own", executables: [thisProgram])]
        let environment = ["UBIQUITOUS_STORE_IDENTIFIER": "org.example.Environment"]
        #expect(try identifier(manifests, environment: environment) == "org.example.Environment")
        #expect(try identifier(manifests, environment: environment, named: "org.example.App") == "org.example.App")
        #expect(try identifier(manifests, environment: ["UBIQUITOUS_STORE_IDENTIFIER": ""]) == "TEAM.org.example.Own")
    }

    @Test func `several manifests of different stores that name this program, or none, leave it to the service`() throws
    {
        #expect(try identifier([:]) == "")
        let manifests = [
            "one.plist": try manifest("org.example.One", executables: [thisProgram]),
            "two.plist": try manifest("org.example.Two", executables: [thisProgram]),
            "broken.plist": Data("{".utf8),
        ]
        #expect(try identifier(manifests) == "")
    }

    @Test func `the bus is the one that is named, or the environment's, or the system's`() {
        let environment = ["UBIQUITOUS_STORE_BUS": "session"]
        #expect(StorePlace(identifier: "a", environment: [:]).bus == .system)
        #expect(StorePlace(identifier: "a", environment: environment).bus == .session)
        #expect(StorePlace(identifier: "a", bus: "system", environment: environment).bus == .system)
        #expect(
            StorePlace(identifier: "a", bus: "unix:path=/x", environment: environment).bus == .address("unix:path=/x"))
    }
}
