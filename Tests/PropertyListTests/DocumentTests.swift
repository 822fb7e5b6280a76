// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Testing

/// docs/remote-format.md promises bytes to other implementations, so its tables must match the code.
@Suite struct DocumentTests {
    @Test func `the document's vectors are the code's`() throws {
        let expected = Vector.all.map { vector in
            [vector.description, "\(vector.value.size)", "\(vector.value.depth)", hex(vector.value.encoded())]
        }
        #expect(try table("Vectors") == expected)
    }

    @Test func `the document's refusals are the code's`() throws {
        let expected = Refusal.all.map { refusal in
            let error = #expect(throws: CanonicalDecodingError.self) { try Value(encoded: refusal.bytes) }
            return [
                refusal.hex.isEmpty ? "(none)" : refusal.hex, "\(error?.offset ?? -1)",
                "\(error?.reason.description ?? "")",
            ]
        }
        #expect(try table("Refused") == expected)
    }

    /// Returns the rows of the table under a heading, without its header and without backticks.
    private func table(_ heading: String) throws -> [[String]] {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
        let document = try String(contentsOf: root.appending(path: "docs/remote-format.md"), encoding: .utf8)
        let section = document.split(separator: "\n").drop { $0 != "### \(heading)" }.dropFirst().prefix {
            !$0.hasPrefix("#")
        }
        return section.filter { $0.hasPrefix("| ") }.dropFirst(2).map { row in
            row.dropFirst(2).dropLast(2).components(separatedBy: " | ")
                .map { $0.trimmingCharacters(in: CharacterSet(charactersIn: "`")) }
        }
    }
}
