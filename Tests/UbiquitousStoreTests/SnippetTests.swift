// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import UbiquitousStoreTesting

struct SnippetTests {
    private static let tests = URL(filePath: #filePath).deletingLastPathComponent()
    private static let articles = tests.deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Sources/UbiquitousStore/UbiquitousStore.docc")

    /// Removes indentation and empty lines.
    private func lines(_ text: some StringProtocol) -> String {
        text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
            .joined(separator: "\n")
    }

    @Test func `the code in the articles is code that is compiled`() throws {
        let compiled = lines(try String(contentsOf: Self.tests.appending(path: "Snippets.swift"), encoding: .utf8))
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.articles.path)
        var count = 0
        for name in names where name.hasSuffix(".md") {
            let article = try String(contentsOf: Self.articles.appending(path: name), encoding: .utf8)
            for block in article.components(separatedBy: "```swift\n").dropFirst() {
                let code = lines(block.components(separatedBy: "```")[0])
                #expect(compiled.contains(code), "\(name):\n\(code)")
                count += 1
            }
        }
        #expect(count > 15)
    }

    @Test func `the articles and the comments are rendered without a warning`() async throws {
        guard try await run(["sh", "-c", "command -v docc swift-symbolgraph-extract"]).exit == .code(0) else {
            return print("NOT TESTED: the documentation, for docc isn't installed here")
        }
        let directory = try TemporaryDirectory()
        let symbols = try directory.makeDirectory("symbols")
        let built = URL(filePath: try ChildProcess.built("ubiquitous-stored")).deletingLastPathComponent()
        let triple = try await run(["clang", "-print-target-triple"]).output
        let extraction = try await run([
            "swift-symbolgraph-extract", "-module-name", "UbiquitousStore", "-target", triple,
            "-I", built.appending(path: "Modules").path, "-I", Self.articles.appending(path: "../../CSystemd").path,
            "-minimum-access-level", "public", "-output-dir", symbols,
        ])
        #expect(extraction.exit == .code(0), "\(extraction.error)")
        let conversion = try await run([
            "docc", "convert", Self.articles.path, "--additional-symbol-graph-dir", symbols, "--warnings-as-errors",
            "--fallback-display-name", "UbiquitousStore", "--fallback-bundle-identifier", "org.example.UbiquitousStore",
            "--output-path", directory.path + "/pages",
        ])
        #expect(conversion.exit == .code(0) && conversion.error == "", "\(conversion.error)")
    }
}
