// SPDX-License-Identifier: Apache-2.0

import Foundation
import FoundationXML
import PressureTesting
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

@BusActor
@Suite(.timeLimit(.minutes(30)))
struct IntrospectionTests {
    @Test func `the running service says what the definition says`() async throws {
        let definition = Description(
            try String(contentsOfFile: repositoryFile("dbus/org.example.UbiquitousStore.xml"), encoding: .utf8)
        )
        #expect(definition.lines.count == 6)
        try await withMachine { machine in
            let client = try machine.client()
            let objects = [
                BusNames.managerInterface: BusNames.managerPath,
                BusNames.administrationInterface: BusNames.managerPath, BusNames.accountInterface: client.account.path,
                BusNames.storeInterface: try client.store(notes).path,
                BusNames.defaultsInterface: client.defaults.path,
                BusNames.domainInterface: try client.domain("org.example.Notes").path,
            ]
            for (interface, path) in objects {
                let described = Description(try await client.introspect(path))
                #expect(described.lines.keys.allSatisfy { objects[$0] == path } && described.lines[interface] != nil)
                let (said, defined) = (described.lines[interface] ?? [], definition.lines[interface] ?? [])
                #expect(said.difference(from: defined).isEmpty, "\(said.difference(from: defined))")
            }
        }
    }

    @Test func `every member of the definition has its prose, with each argument`() throws {
        let xml = try String(contentsOfFile: repositoryFile("dbus/org.example.UbiquitousStore.xml"), encoding: .utf8)
        for (_, lines) in Description(xml).lines {
            for line in lines where !line.contains(" annotation") {
                let words = line.split(separator: " ")
                if words[1] == "argument" {
                    #expect(xml.contains("@\(words[3]):"), "\(line)")
                } else {
                    #expect(xml.contains("\(words[1]):\n"), "\(line)")
                }
            }
        }
    }

    @Test func `the definition explains every error that it lists, and lists all of the service's own`() throws {
        let errors = try DocumentedErrors(file: repositoryFile("dbus/org.example.UbiquitousStore.xml"))
        #expect(errors.unexplained == [])
        #expect(errors.all.filter { $0.hasPrefix("org.example.") } == Set(StoreErrorCode.allCases.map(\.name)))
        #expect(errors.all.contains("org.freedesktop.DBus.Error.IOError"))
    }

    @Test func `a member's errors are its own, those of members that it names, and those of its interface`() throws {
        let errors = try DocumentedErrors(file: repositoryFile("dbus/org.example.UbiquitousStore.xml"))
        func names(_ interface: String, _ member: String) -> Set<Substring> {
            Set(errors.names(interface: interface, member: member).compactMap { $0.split(separator: ".").last })
        }
        // By way of Encrypt and SyncNow.
        let replacing = names(BusNames.accountInterface, "ReplaceKey")
        #expect(replacing.isSuperset(of: ["Conflict", "Busy", "RemoteFormatTooNew", "IOError", "UnknownMethod"]))
        #expect(names(BusNames.accountInterface, "RenameDevice").isSuperset(of: ["NotSignedIn", "IOError", "Corrupt"]))
        #expect(names(BusNames.managerInterface, "OpenStore").contains("IdentityUnknown"))
        let reading = names(BusNames.storeInterface, "GetValue")
        #expect(reading.contains("NoSuchKey") && reading.isDisjoint(with: ["QuotaExceeded", "Busy", "NotSignedIn"]))
    }

    @Test func `introspection lists the caller's own objects and no others`() async throws {
        try await withMachine {
            $0.manifests.append(ManifestText("org.example.Other"))
        } _: { machine in
            let client = try machine.client()
            #expect(Description(try await client.introspect(BusNames.usersPath)).nodes == ["u\(client.uid)"])
            let stores = Description(try await client.introspect(client.account.path)).nodes
            #expect(stores == ["org_2eexample_2eNotes", "org_2eexample_2eOther"])
            #expect(Description(try await client.introspect("/")).nodes == ["org"])
        }
    }

    @Test func `introspection lists the caller's domains, and the layer of this host below each`() async throws {
        try await withMachine { machine in
            let client = try machine.client()
            func nodes(_ path: String) async throws -> [String] { Description(try await client.introspect(path)).nodes }
            let own = BusNames.defaultsPath(uid: client.uid)
            #expect(try await nodes(BusNames.defaultsRoot) == ["u\(client.uid)"])
            #expect(try await nodes(own) == [])
            try await client.domain("org.example.Notes").set("size", .integer(1))
            try await client.domain("org.example.Host", isHost: true).set("size", .integer(1))
            #expect(try await nodes(own) == ["org_2eexample_2eHost", "org_2eexample_2eNotes"])
            let domain = try BusNames.domainPath(uid: client.uid, domain: "org.example.Notes")
            #expect(try await nodes(domain) == ["host"])
            #expect(try await nodes(domain + "/host") == [])
        }
    }

    @Test func `a store that is removed everywhere is not listed any more`() async throws {
        try await withMachine {
            $0.manifests = []
            $0.arguments = ["--allow-undeclared"]
        } _: { machine in
            let client = try machine.client()
            try await client.store(notes).set("key", .integer(1))
            #expect(Description(try await client.introspect(client.account.path)).nodes == ["org_2eexample_2eNotes"])
            try await client.manager("RemoveStore") {
                try $0.append(notes)
                try $0.append(1 as UInt64)
            }
            #expect(Description(try await client.introspect(client.account.path)).nodes == [])
        }
    }

    @Test(arguments: ["-p", "-a"])
    func `Qt's generator makes a proxy and an adaptor of the definition`(option: String) async throws {
        guard try await run(["sh", "-c", "command -v qdbusxml2cpp"]).exit == .code(0) else {
            return print("NOT TESTED: what Qt makes of the definition, for qdbusxml2cpp isn't installed here")
        }
        let directory = try TemporaryDirectory()
        let result = try await run([
            "qdbusxml2cpp", option, directory.path + "/generated",
            repositoryFile("dbus/org.example.UbiquitousStore.xml"),
        ])
        #expect(result.exit == .code(0), "\(result.error)")
        let header = try String(contentsOfFile: directory.path + "/generated.h", encoding: .utf8)
        #expect(header.contains("QVariantMap") && header.contains("QList<UbiquitousStoreUser>"))
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `introspection of another user's objects finds nothing`() async throws {
        try await withMachine { machine in
            let (one, other) = (try machine.client(as: Users.nobody), try machine.client(as: Users.daemon))
            try await one.store(notes).set("key", .string(.init(secret)))
            #expect(await errorName { _ = try await other.introspect(one.account.path) } == "UnknownObject")
            #expect(await errorName { _ = try await other.introspect(one.store(notes).path) } == "UnknownObject")
            let nodes = Description(try await other.introspect(BusNames.usersPath)).nodes
            #expect(!nodes.contains("u\(one.uid)") && nodes.contains("u\(other.uid)"))
        }
    }
}

/// An introspection's contents, with one line for everything that must match.
private final class Description: NSObject, XMLParserDelegate {
    /// The lines by interface, without the standard interfaces.
    private(set) var lines: [String: [String]] = [:]
    private(set) var nodes: [String] = []

    private var interface = ""
    private var member = ""
    private var arguments = 0

    init(_ xml: String) {
        super.init()
        // Skips the document type before the root element, which the parser would fetch.
        let start = xml.range(of: "<node")?.lowerBound ?? xml.startIndex
        let parser = XMLParser(data: Data(xml[start...].utf8))
        parser.delegate = self
        #expect(parser.parse(), "\(String(describing: parser.parserError))")
    }

    func parser(
        _ parser: XMLParser,
        didStartElement element: String,
        namespaceURI: String?,
        qualifiedName: String?,
        attributes: [String: String]
    ) {
        let name = attributes["name"] ?? ""
        switch element {
        case "interface":
            interface = name.hasPrefix("org.freedesktop.DBus") ? "" : name
            if !interface.isEmpty { lines[interface] = [] }
            member = ""
        case "node" where !name.isEmpty:
            nodes.append(name)
        case "method", "signal":
            member = name
            arguments = 0
            add("\(element) \(name)")
        case "property":
            member = name
            add("property \(name) \(attributes["type"] ?? "") \(attributes["access"] ?? "")")
        case "arg":
            arguments += 1
            add("\(member) argument \(arguments) \(name) \(attributes["type"] ?? "") \(attributes["direction"] ?? "")")
        case "annotation":
            if name.hasPrefix("org.qtproject.") { return }
            add("\(member) annotation \(name) \(attributes["value"] ?? "")")
        default: break
        }
    }

    private func add(_ line: String) {
        if !interface.isEmpty { lines[interface]?.append(line) }
    }
}
