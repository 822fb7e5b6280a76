// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

struct SnippetTests {
    private static let tests = URL(filePath: #filePath).deletingLastPathComponent()
    private static let articles = tests.deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Sources/UbiquitousStore/UbiquitousStore.docc")

    /// Lines without what they are indented by.
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
}
