// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

struct LayerTests {
    let repository = Repository()

    @Test func `every module imports exactly what ARCHITECTURE.md lists for it`() throws {
        for layer in try repository.layers() {
            let imported = try repository.imports(below: layer.folder)
            #expect(imported == layer.imports, "\(layer.module) in \(layer.folder)")
        }
    }

    @Test func `every folder of Sources that has Swift is in ARCHITECTURE.md's table`() throws {
        let listed = try repository.layers().map { $0.folder + "/" }
        for source in try repository.sources() {
            #expect(listed.contains { source.hasPrefix($0) }, "\(source)")
        }
    }

    /// A module that a target only imports is there when something else has been built, so that a build on a new machine
    /// fails at times.
    @Test func `every target declares the modules of this package that it imports`() throws {
        let targets = try repository.targets()
        let modules = Set(targets.map(\.name))
        #expect(modules.count > 50)
        for target in targets {
            let imported = try repository.imports(below: target.folder).intersection(modules)
            #expect(imported.subtracting(target.declared) == [], "\(target.name)")
        }
    }

    @Test func `only modules that a library product shows declare anything public`() throws {
        let folders = Dictionary(uniqueKeysWithValues: try repository.layers().map { ($0.module, $0.folder) })
        var shown: Set<String> = []
        var open = [
            "UbiquitousStore", "UbiquitousDefaults", "Replication", "UbiquitousStoreTesting", "BackendTesting",
        ]
        while let module = open.popLast() {
            guard let folder = folders[module], shown.insert(module).inserted else { continue }
            open += try repository.imports(below: folder, publicly: true)
        }
        for source in try repository.sources() {
            let module = folders.first { source.hasPrefix($0.value + "/") }?.key
            if shown.contains(module ?? "") { continue }
            let text = try String(contentsOf: repository.root.appending(path: source), encoding: .utf8)
            #expect(!text.contains(/(?m)^ *(?:@\w+ )*public (?!import)/), "\(source)")
        }
    }

    @Test func `no module imports itself by way of others`() throws {
        let layers = try repository.layers()
        let imports = Dictionary(uniqueKeysWithValues: layers.map { ($0.module, $0.imports) })
        for layer in layers {
            var below: Set<String> = []
            var open = [layer.module]
            while let next = open.popLast() {
                for module in imports[next] ?? [] where below.insert(module).inserted { open.append(module) }
            }
            #expect(!below.contains(layer.module), "\(layer.module) imports itself, by way of others")
        }
    }

    /// Whatever has the daemon can reach everything from there (docs/decisions/0161). The list may only get shorter.
    @Test func `no other files of the service know the daemon`() throws {
        let known = [
            "Daemon", "Interfaces/AccountInterface", "Interfaces/AdministrationInterface",
            "Interfaces/DefaultsInterface", "Interfaces/DomainInterface", "Interfaces/Interface+members",
            "Interfaces/ManagerInterface", "Interfaces/MethodCall+arguments", "Interfaces/StoreInterface",
        ].map { "Sources/StoreDaemon/\($0).swift" }
        // By Unicode's rules, "daemon.users" is one word.
        let daemon = /\b[Dd]aemon\b/.wordBoundaryKind(.simple)
        let found = try repository.sources().filter { source in
            guard source.hasPrefix("Sources/StoreDaemon/") else { return false }
            let text = try String(contentsOf: repository.root.appending(path: source), encoding: .utf8)
            // By its type or by a property, but not in a comment.
            return text.replacing(/\/\/.*/, with: "").contains(daemon)
        }
        #expect(Set(found) == Set(known))
    }

    /// What reads, and must not see what a crash could undo, commits staged writes first, and so do those that close data
    /// or keep an order (docs/decisions/0090).
    @Test func `no other files of the service commit`() throws {
        let known = [
            "Callers/Clients", "Daemon", "Defaults/LayerSizes", "Interfaces/AdministrationInterface",
            "Interfaces/DefaultsInterface", "Interfaces/DomainInterface", "Interfaces/Interface+members",
            "Interfaces/StoreInterface", "Users/User", "Users/UserLocalKeys", "Users/UserRecovery", "Users/UserRoom",
            "Users/Users", "WriteQueue",
        ].map { "Sources/StoreDaemon/\($0).swift" }
        let found = try repository.sources().filter { source in
            guard source.hasPrefix("Sources/StoreDaemon/") else { return false }
            let text = try String(contentsOf: repository.root.appending(path: source), encoding: .utf8)
            return text.contains(".commit()")
        }
        #expect(Set(found) == Set(known))
    }

    @Test func `every method of the service says who may call it`() throws {
        let members = "Sources/StoreDaemon/Interfaces/Interface+members.swift"
        var methods = 0
        for source in try repository.sources() where source.hasPrefix("Sources/StoreDaemon/") && source != members {
            let text = try String(contentsOf: repository.root.appending(path: source), encoding: .utf8)
            #expect(!text.contains("unguardedProperty"), "\(source)")
            // A row begins with the name of its method.
            for row in text.split(separator: /\.method\(\s*"/).dropFirst() {
                methods += 1
                let declaration = row.split(separator: /\)\s*\{/, maxSplits: 1)[0]
                #expect(
                    declaration.contains("by: .") && declaration.contains("on: daemon"), "\(source): \(row.prefix(40))")
            }
        }
        #expect(methods > 40)
    }

    @Test func `every property of the service says who may read it`() throws {
        // This one itself says to each caller what that one may know.
        let unsaid = ["LastErrorMessage"]
        var (properties, others) = (0, [String]())
        for source in try repository.sources() where source.hasPrefix("Sources/StoreDaemon/Interfaces/") {
            let text = try String(contentsOf: repository.root.appending(path: source), encoding: .utf8)
            // A row begins with the name of its property.
            for row in text.split(separator: /\.property\(\s*"/).dropFirst() {
                properties += 1
                let declaration = row.split(separator: /\)\s*\{/, maxSplits: 1)[0]
                if !declaration.contains("to: .") { others.append(String(row.prefix { $0 != "\"" })) }
            }
        }
        #expect(others == unsaid)
        #expect(properties > 40)
    }

    /// The compiler doesn't check these (docs/decisions/0160).
    @Test func `the line after a declaration that the compiler doesn't check says why it is safe`() throws {
        let unchecked = /@unchecked Sendable|nonisolated\(unsafe\)|unowned\(unsafe\)/
        var declarations = 0
        for source in try repository.sources() {
            let text = try String(contentsOf: repository.root.appending(path: source), encoding: .utf8)
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            for (line, next) in zip(lines, lines.dropFirst()) {
                let code = line.drop(while: \.isWhitespace)
                if code.hasPrefix("//") || !code.contains(unchecked) { continue }
                declarations += 1
                #expect(next.drop(while: \.isWhitespace).hasPrefix("//"), "\(source): \(code)")
            }
        }
        #expect(declarations > 10)
    }

    @Test(arguments: ["Replication", "StoreEngine", "SyncEngine", "Sealing", "Backends", "HTTPClient", "RemoteAddress"])
    func `what is below the service names neither commands nor members of the interface`(module: String) throws {
        let sources = try repository.sources().filter { $0.hasPrefix("Sources/\(module)/") }
        #expect(!sources.isEmpty)
        for source in sources {
            let text = try String(contentsOf: repository.root.appending(path: source), encoding: .utf8)
            let code = text.split(separator: "\n").filter { !$0.contains("//") }.joined(separator: "\n")
            #expect(!code.contains(/ubiquitousctl|[a-z] (?:with|see|call) [A-Z][a-z]+[A-Z.(]/), "\(source)")
        }
    }
}

/// A row of the table: `Module (folder) → Import, Import`.
struct Layer {
    let module: String
    let folder: String
    let imports: Set<String>

    init?(_ line: Substring) {
        let sides = line.components(separatedBy: "→")
        guard sides.count == 2 else { return nil }
        let name = sides[0].split(whereSeparator: { " ()".contains($0) })
        guard let module = name.first else { return nil }
        self.module = String(module)
        folder = name.count > 1 ? String(name[1]) : "Sources/\(module)"
        let listed = sides[1].split(whereSeparator: { ", ".contains($0) }).map(String.init)
        imports = listed == ["nothing"] ? [] : Set(listed)
    }
}

/// A target of Package.swift, as `swift package dump-package` writes it.
struct Target: Decodable {
    let name: String
    let folder: String
    /// Its own module, and those that it says it depends on.
    let declared: Set<String>

    init(from decoder: any Decoder) throws {
        let description = try Description(from: decoder)
        name = description.name
        folder = description.path ?? (description.type == "test" ? "Tests/" : "Sources/") + description.name
        declared = Set(description.dependencies.compactMap { ($0.byName ?? $0.target)?.name } + [name])
    }

    private struct Description: Decodable {
        let name: String
        let type: String
        let path: String?
        let dependencies: [Dependency]
    }

    private struct Dependency: Decodable {
        let byName: NameAndConditions?
        let target: NameAndConditions?
    }

    /// A list of a name, and when it counts.
    private struct NameAndConditions: Decodable {
        let name: String
        init(from decoder: any Decoder) throws {
            var list = try decoder.unkeyedContainer()
            name = try list.decode(String.self)
        }
    }
}

/// The checkout that these tests were built from.
struct Repository {
    let root = URL(fileURLWithPath: #filePath).appending(path: "../../..").standardizedFileURL

    /// The toolchain's modules, which the table doesn't list.
    private static let toolchain: Set<String> = [
        "Dispatch", "Foundation", "FoundationEssentials", "Glibc", "Observation", "Synchronization",
    ]

    /// Returns the rows of the first code block below "Layers".
    func layers() throws -> [Layer] {
        let page = try String(contentsOf: root.appending(path: "ARCHITECTURE.md"), encoding: .utf8)
        let section = try #require(page.components(separatedBy: "\n## Layers\n").last)
        let block = section.components(separatedBy: "```")[1]
        return block.split(separator: "\n").compactMap(Layer.init)
    }

    /// Returns the targets that Package.swift lists.
    func targets() throws -> [Target] {
        struct Package: Decodable { let targets: [Target] }
        let scratch = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: scratch) }
        let swift = Process()
        swift.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        // A folder of its own, because the build that runs the tests may hold the package's.
        swift.arguments = [
            "swift", "package", "--package-path", root.path, "--scratch-path", scratch.path, "dump-package",
        ]
        let output = Pipe()
        swift.standardOutput = output
        try swift.run()
        let description = try output.fileHandleForReading.readToEnd() ?? Data()
        swift.waitUntilExit()
        try #require(swift.terminationStatus == 0, "swift package dump-package failed")
        return try JSONDecoder().decode(Package.self, from: description).targets
    }

    /// Returns the Swift files below Sources, as paths in the repository.
    func sources() throws -> [String] {
        try files(below: "Sources").map { String($0.standardizedFileURL.path.dropFirst(root.path.count + 1)) }
    }

    /// Returns the modules that the files below a folder import, except the toolchain's.
    /// - Parameter publicly: whether to return only those whose types the module's own declarations may show.
    func imports(below folder: String, publicly: Bool = false) throws -> Set<String> {
        let access = publicly ? #"(?:@\w+ )*public "# : #"(?:@\w+ |public |package |internal )*"#
        let pattern = try Regex("^" + access + #"import (?:\w+ )?(\w+)(?:\.\w+)*$"#)
        var modules: Set<String> = []
        for file in try files(below: folder) {
            for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
                guard let match = try pattern.wholeMatch(in: line), let module = match.output[1].substring else {
                    continue
                }
                modules.insert(String(module))
            }
        }
        return modules.subtracting(Self.toolchain)
    }

    private func files(below folder: String) throws -> [URL] {
        let files = FileManager.default.enumerator(at: root.appending(path: folder), includingPropertiesForKeys: nil)
        return (files?.allObjects as? [URL] ?? []).filter { $0.pathExtension == "swift" }
    }
}
