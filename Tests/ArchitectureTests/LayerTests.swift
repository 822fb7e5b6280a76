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

    /// Returns the Swift files below Sources, as paths in the repository.
    func sources() throws -> [String] {
        try files(below: "Sources").map { String($0.standardizedFileURL.path.dropFirst(root.path.count + 1)) }
    }

    /// Returns the modules that the files below a folder import, except the toolchain's.
    func imports(below folder: String) throws -> Set<String> {
        let pattern = try Regex(#"^(?:@\w+ |public |package |internal )*import (?:\w+ )?(\w+)(?:\.\w+)*$"#)
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
