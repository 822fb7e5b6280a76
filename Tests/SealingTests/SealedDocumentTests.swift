// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import PropertyList
import Testing

@testable import Sealing

/// The vectors for encrypted accounts in docs/remote-format.md, row by row.
@Suite struct SealedDocumentTests {
    private static let key = AccountKey.documented
    private static let origin: UInt64 = 0x1112_1314_1516_1718

    private func plain(_ name: String) throws -> [UInt8] {
        try octets(#require(try table("## Vectors of blobs").first { $0[0] == name })[1])
    }

    private static func digits(_ key: SymmetricKey) -> String { key.withUnsafeBytes { hexadecimal($0) } }

    @Test func `the keys in the document are what is derived`() throws {
        let (key, keys) = (Self.key, Self.key.blobs)
        let link = KeyLink(from: .former, to: key.identifier, .replaced)
        var encoder = CanonicalEncoder()
        encoder.note(link)
        let written = [
            "phrase": RecoveryPhrase(of: key).words.joined(separator: " "),
            "K(`salt`)": Self.digits(keys.salt), "K(`blob`)": Self.digits(keys.blob),
            "K(`bucket`)": Self.digits(keys.bucket), "K(`marker`)": Self.digits(keys.marker),
            "K(`successor`)": Self.digits(keys.successor),
            "hash of color": String(keys.bucketHash(of: Array("color".utf8)), radix: 16),
            "link from 2 to 1, replaced": hexadecimal(encoder.bytes),
        ]
        let rows = try table("### Vectors of keys")
        #expect(Set(rows.map { $0[0] }) == Set(written.keys))
        for row in rows {
            let value = row[0] == "phrase" ? row[1] : row[1].replacingOccurrences(of: " ", with: "")
            #expect(written[row[0]] == value, "\(row[0])")
        }
    }

    @Test func `the sealed blobs in the document are what is written`() throws {
        let key = Self.key
        let link = KeyLink(from: .former, to: key.identifier, .replaced)
        let former = FormerName(AccountKey.former.identifier, of: key)
        let (context, name) = SealedBlob.seal(segment: try plain("context"), key.blobs)
        let head = SealedBlob.seal(
            head: try plain("head"), origin: Self.origin, sequence: 3, random: (.max, .max), key.blobs)
        let written = [
            "marker without links": (SealedMarker(of: key, time: 77, links: []).bytes, "a/\(key.identifier)"),
            "marker with the link": (SealedMarker(of: key, time: 77, links: [link]).bytes, "a/\(key.identifier)"),
            "note": (link.note(), "a/\(link.noteName)"),
            "note of a former name": (former.note(), "a/\(former.noteName)"),
            "context": (context, "s/\(hexadecimal(name))"),
            "head": (head, "h/\(String(Self.origin, radix: 16))"),
        ]
        let rows = try table("### Vectors of sealed blobs")
        #expect(Set(rows.map { $0[0] }) == Set(written.keys))
        for row in rows {
            #expect(try written[row[0]]?.0 == octets(row[1]), "\(row[0])")
            #expect(written[row[0]]?.1 == row[2], "\(row[0])")
        }
    }

    @Test func `the sealed blobs in the document are read as they were written`() throws {
        let rows = Dictionary(uniqueKeysWithValues: try table("### Vectors of sealed blobs").map { ($0[0], $0[1]) })
        func bytes(_ name: String) throws -> [UInt8] { try octets(#require(rows[name])) }
        let head = try SealedBlob(head: try bytes("head"), Self.key.blobs)
        #expect(head.kind == .head(origin: Self.origin))
        #expect(try head.content == plain("head"))
        let context = try SealedBlob(segment: try bytes("context"), Self.key.blobs)
        #expect(context.kind == .segment)
        #expect(try context.content == plain("context"))
        let marker = try SealedMarker(decoding: try bytes("marker with the link"))
        #expect(marker.identifier == Self.key.identifier && marker.time == 77)
        #expect(marker.isGenuine(under: Self.key.blobs) && !marker.isGenuine(under: AccountKey.former.blobs))
        #expect(marker.links.map(\.kind) == [.replaced] && marker.links[0].isProven(by: AccountKey.former.blobs))
        let name = marker.links[0].noteName
        #expect(try KeyLink(note: try bytes("note"), named: name) == marker.links[0])
    }

    @Test func `the refused blobs in the document are refused for what it says`() throws {
        for row in try table("### Refused sealed blobs") {
            let bytes = try octets(row[1])
            let flaw: SealingFlaw? = #expect(throws: SealingFlaw.self, "\(row)") {
                switch row[0] {
                case "context": _ = try SealedBlob(segment: bytes, Self.key.blobs)
                case "head": _ = try SealedBlob(head: bytes, Self.key.blobs)
                case "marker":
                    let marker = try SealedMarker(decoding: bytes)
                    if !marker.isGenuine(under: Self.key.blobs) { throw SealingFlaw.damaged("its check is wrong") }
                default:
                    let link = KeyLink(from: .former, to: Self.key.identifier, .replaced)
                    _ = try KeyLink(note: bytes, named: link.noteName)
                }
            }
            #expect(flaw.map(Self.word) == row[2], "\(row[0]): \(row[3]): \(String(describing: flaw))")
        }
    }

    private static func word(_ flaw: SealingFlaw) -> String {
        switch flaw {
        case .foreign: "none of ours"
        case .plain: "in plain"
        case .tooNew: "newer"
        case .tooOld: "older"
        case .otherKey: "another account"
        case .damaged: "damaged"
        }
    }

    @Test func `lengths are rounded up as the document says`() throws {
        let page = try String(contentsOf: package.appending(path: "docs/remote-format.md"), encoding: .utf8)
        let lines = page.split(separator: "\n").map(String.init)
        func numbers(_ heading: String) throws -> [Int] {
            try #require(lines.first { $0.hasPrefix(heading) }).split(separator: "|").dropFirst()
                .compactMap { Int($0.filter(\.isNumber)) }
        }
        #expect(try numbers("| n | 1 |").map(SealedBlob.padded) == (try numbers("| P(n) |")))
        #expect(try numbers("| n | 1 |").count == 9)
    }

    @Test func `the largest content has the length that the document gives as the limit`() {
        let head = 30 + 32 + SealedBlob.padded(16 + 4 + SealedBlob.Limit.headContent) + 16 + 16 + 32
        #expect(head == SealedBlob.Limit.head)
        let segment = 22 + 32 + SealedBlob.padded(4 + SealedBlob.Limit.segmentContent) + 16
        #expect(segment == SealedBlob.Limit.segment)
    }
}
