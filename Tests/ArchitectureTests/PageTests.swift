// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

struct PageTests {
    private let root = Repository().root

    @Test func `links of pages lead to files, and to headings that they have`() throws {
        for page in try pages() {
            for (file, heading) in try links(of: page) {
                #expect(FileManager.default.fileExists(atPath: root.appending(path: file).path), "\(page): \(file)")
                guard let heading else { continue }
                #expect(try headings(of: file).contains(heading), "\(page): \(file)#\(heading)")
            }
        }
    }

    @Test func `pages in the package link to pages in the package`() throws {
        let packaged = try text(of: "packaging/debian/ubiquitous-store.docs").split(separator: "\n")
        for page in packaged where page.hasSuffix(".md") {
            for (file, _) in try links(of: String(page)) where file.hasPrefix("docs/") {
                #expect(packaged.contains { file == $0 || file.hasPrefix($0 + "/") }, "\(page) links to \(file)")
            }
        }
    }

    @Test func `the list of decisions has each of them, under its title`() throws {
        let index = try text(of: "docs/decisions/README.md")
        for file in try FileManager.default.contentsOfDirectory(atPath: root.appending(path: "docs/decisions").path)
        where file != "README.md" {
            let heading = try text(of: "docs/decisions/" + file).prefix { $0 != "\n" }
            let title = heading.split(separator: ". ", maxSplits: 1).last ?? ""
            #expect(index.contains("\n- \(file.prefix(4)) [\(title)](\(file))"), "\(file)")
        }
    }

    private func pages() throws -> [String] {
        let docs = try FileManager.default.subpathsOfDirectory(atPath: root.appending(path: "docs").path)
        return ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "Benchmarks/README.md"]
            + docs.filter { $0.hasSuffix(".md") }.map { "docs/" + $0 }
    }

    private func text(of page: String) throws -> String {
        try String(contentsOf: root.appending(path: page), encoding: .utf8)
    }

    /// Returns the targets of a page's links within the repository: a file, and possibly a heading in it.
    private func links(of page: String) throws -> [(file: String, heading: String?)] {
        let folder = URL(filePath: "/" + page).deletingLastPathComponent()
        // Code contains brackets too.
        let text = try text(of: page).replacing(/(?s)```.*?```|`[^`\n]*`/, with: "")
        return text.matches(of: /\]\(([^)\s]+)\)/).map { String($0.output.1) }.filter { !$0.contains(":") }.map {
            link in
            let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let file = parts[0].isEmpty ? "/" + page : folder.appending(path: parts[0]).standardized.path
            return (String(file.dropFirst()), parts.count > 1 ? parts[1] : nil)
        }
    }

    /// Returns the names of a page's headings in links: lower case, hyphens for spaces, no punctuation.
    private func headings(of page: String) throws -> Set<String> {
        let lines = try text(of: page).split(separator: "\n").filter { $0.hasPrefix("#") }
        return Set(
            lines.map { line in
                line.drop { $0 == "#" }.dropFirst().lowercased().replacing(" ", with: "-")
                    .filter { $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" }
            })
    }
}
