// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// What docs/remote-format.md promises to other implementations, row by row.
struct FormatDocument {
    let text: String

    init() throws {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appending(path: "../../docs/remote-format.md")
        text = try String(contentsOf: page, encoding: .utf8)
    }

    /// The rows of the table under a heading, without its header. Code comes without its backticks, and `(none)` as an
    /// empty string.
    func table(_ heading: String) throws -> [[String]] {
        let section = text.split(separator: "\n").drop { $0 != heading }.dropFirst().prefix { !$0.hasPrefix("#") }
        let rows = section.filter { $0.hasPrefix("| ") }.dropFirst(2).map { row in
            row.dropFirst(2).dropLast(2).components(separatedBy: " | ")
                .map { $0.trimmingCharacters(in: CharacterSet(charactersIn: "`")) }
                .map { $0 == "(none)" ? "" : $0 }
        }
        try #require(!rows.isEmpty, "\(heading)")
        return rows
    }
}

/// The bytes of hexadecimal digits, with or without spaces between them.
func octets(_ text: some StringProtocol) throws -> [UInt8] {
    let digits = text.utf8.filter { $0 != UInt8(ascii: " ") }
    return try stride(from: 0, to: digits.count, by: 2).map { place in
        let pair = String(decoding: digits[place..<min(place + 2, digits.count)], as: UTF8.self)
        return try #require(UInt8(pair, radix: 16), "\(pair)")
    }
}
