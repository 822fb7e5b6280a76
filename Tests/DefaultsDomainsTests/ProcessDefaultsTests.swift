// SPDX-License-Identifier: Apache-2.0

import Foundation
import ManagedDefaults
import PropertyList
import Testing
import UbiquitousStoreTesting

@testable import DefaultsDomains

/// Where a program's own domain, its bus and its store come from.
@Suite(.serialized, .timeLimit(.minutes(30)))
struct ProcessDefaultsTests {
    private static let program = "/usr/bin/true"

    /// Finds the place of a program that a manifest names.
    private func place(
        domain: String? = nil, environment: [String: String] = [:], program: String = program, bus: String? = nil
    ) throws -> ProcessDefaults.Place {
        let directory = try TemporaryDirectory()
        var manifest = ManifestText(
            "org.example.Manifest.store", application: "org.example.Manifest", executables: [Self.program])
        manifest.ubiquitousDefaults = ["colour"]
        try Data(manifest.xml.utf8).write(to: URL(filePath: directory.path + "/manifest.plist"))
        return ProcessDefaults.find(
            domain: domain, bus: bus, program: program, environment: environment,
            manifestDirectories: [directory.path])
    }

    @Test func `the app's choice goes before the environment, the manifest, the flatpak and the program's name`() throws
    {
        let variables = ["UBIQUITOUS_STORE_DOMAIN": "org.example.Environment", "FLATPAK_ID": "org.example.Flatpak"]
        #expect(try place(domain: "org.example.App", environment: variables).domain == "org.example.App")
        #expect(try place(environment: variables).domain == "org.example.Environment")
        let flatpak = ["UBIQUITOUS_STORE_DOMAIN": "", "FLATPAK_ID": "org.example.Flatpak"]
        #expect(try place(environment: flatpak).domain == "org.example.Manifest")
        #expect(try place(environment: flatpak, program: "/usr/bin/other").domain == "org.example.Flatpak")
        #expect(try place(program: "/usr/bin/other").domain == "other")
        #expect(try place(program: "/").domain == "program")
    }

    @Test(arguments: ["..", "a/b", "NSGlobalDomain", "", String(repeating: "x", count: 256)])
    func `a name that no domain can have is ignored`(name: String) throws {
        #expect(try place(domain: name).domain == "org.example.Manifest")
        let environment = ["UBIQUITOUS_STORE_DOMAIN": name, "FLATPAK_ID": name]
        #expect(try place(environment: environment, program: "/usr/bin/other").domain == "other")
    }

    @Test func `the service is told the program's path as the manifest has it`() throws {
        #expect(try place().program == Self.program)
        #expect(try place(program: "/usr/bin/other").program == "/usr/bin/other")
        let directory = try TemporaryDirectory()
        try FileManager.default.createSymbolicLink(
            atPath: directory.path + "/link", withDestinationPath: Self.program)
        let manifest = ManifestText(
            "org.example.Linked", application: "org.example.Linked", executables: [directory.path + "/link"])
        try Data(manifest.xml.utf8).write(to: URL(filePath: directory.path + "/manifest.plist"))
        let real = try #require(realpath(Self.program, nil))
        defer { free(real) }
        let found = ProcessDefaults.find(
            domain: nil, bus: nil, program: String(cString: real), environment: [:],
            manifestDirectories: [directory.path])
        #expect(found.domain == "org.example.Linked" && found.program == directory.path + "/link")
    }

    @Test func `keys roam only if the domain is that of the manifest`() throws {
        let own = try place()
        #expect(own.store == "org.example.Manifest.store" && own.ubiquitous.contains("colour"))
        #expect(try place(domain: "org.example.Manifest").store == own.store)
        let other = try place(domain: "org.example.App")
        #expect(other.store == nil && !other.ubiquitous.contains("colour"))
    }

    @Test func `the bus is the app's choice, or the environment's, or the system's`() throws {
        let environment = ["UBIQUITOUS_STORE_BUS": "session"]
        #expect(try place(environment: environment, bus: "system").bus == "system")
        #expect(try place(environment: environment).bus == "session")
        #expect(try place().bus == "system")
    }

    @Test func `an app chooses its domain before the first use, and not afterwards`() async throws {
        try await DefaultsDesk.with(started: false) { (desk: DefaultsDesk) async throws in
            #expect(try await desk.run("use", "org.example.Chosen").output == "org.example.Chosen false")
            #expect(try await desk.run("domain").output == "\(editor) false")
            #expect(try await desk.run("use", "..").output == "\(editor) false")
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give programs to others"))
    func `the environment chooses neither domain nor bus of a set-user-ID program`() async throws {
        try await DefaultsDesk.with(users: true) { (desk: DefaultsDesk) async throws in
            try await desk.other().set("name", .string("Ada"))
            let directory = try TemporaryDirectory()
            let program = directory.path + "/tool"
            try FileManager.default.copyItem(atPath: ChildProcess.built("defaults-app"), toPath: program)
            #expect(chmod(directory.path, 0o755) == 0 && chmod(program, 0o755) == 0)
            #expect(try await desk.run("domain", program: program).output == "\(editor) false")
            // Its owner has the setting, in the domain that the program has without the variable.
            try await BusClient(desk.bus, as: 65534).domain("tool").set("name", .string("Ada"))
            let owned = try desk.start(
                ["read", "name"], as: 65534, program: program, variables: ["UBIQUITOUS_STORE_DOMAIN": ""])
            #expect(try await owned.finish() == .code(0) && desk.output == "Ada", "\(desk.error)")
            #expect(chown(program, 65534, 0) == 0 && chmod(program, 0o4755) == 0)
            #expect(try await desk.run("domain", program: program).output == "tool false", "\(desk.error)")
            #expect(try await desk.run("read", "name", program: program).output == "none", "\(desk.error)")
        }
    }
}
