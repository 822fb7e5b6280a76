// SPDX-License-Identifier: Apache-2.0

import Foundation
import Sealing
import SeededRandom
import Testing

/// The package's directory.
let package = URL(filePath: #filePath).appending(path: "../../..").standardized

/// Returns the rows of a table of docs/remote-format.md, by its heading, without its head and without backticks.
func table(_ heading: String) throws -> [[String]] {
    let page = try String(contentsOf: package.appending(path: "docs/remote-format.md"), encoding: .utf8)
    let section = page.split(separator: "\n").drop { $0 != heading }.dropFirst().prefix { !$0.hasPrefix("#") }
    let rows = section.filter { $0.hasPrefix("| ") }.dropFirst(2).map { row in
        row.dropFirst(2).dropLast(2).components(separatedBy: " | ")
            .map { $0.trimmingCharacters(in: CharacterSet(charactersIn: "`")) }
    }
    try #require(!rows.isEmpty, "\(heading)")
    return rows
}

/// Returns the bytes of hexadecimal digits, with or without spaces between them.
func octets(_ text: some StringProtocol) throws -> [UInt8] {
    let digits = text.utf8.filter { $0 != UInt8(ascii: " ") }
    return try stride(from: 0, to: digits.count, by: 2).map { place in
        let pair = String(decoding: digits[place..<min(place + 2, digits.count)], as: UTF8.self)
        return try #require(UInt8(pair, radix: 16), "\(pair)")
    }
}

func hexadecimal(_ bytes: some Sequence<UInt8>) -> String { bytes.map { String(format: "%02x", $0) }.joined() }

extension AccountKey {
    /// The key of the document's vectors.
    static let documented = sample(secret: Array(0..<16), 1)
    /// The key before that one.
    static let former = sample(secret: [UInt8](repeating: 0xEE, count: 16), 2)

    static func sample(secret: [UInt8] = Array(0..<16), _ identifier: UInt64) -> AccountKey {
        guard let key = AccountKey(secret: secret, identifier: KeyIdentifier(high: 0, low: identifier)) else {
            preconditionFailure("a secret has 16 bytes")
        }
        return key
    }
}

extension SplitMix {
    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in .random(in: 0...255, using: &self) } }

    mutating func key() -> AccountKey { AccountKey { next() } }
}
