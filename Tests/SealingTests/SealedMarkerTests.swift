// SPDX-License-Identifier: Apache-2.0

import Crypto
import SeededRandom
import Testing

@testable import Sealing

@Suite struct SealedMarkerTests {
    private static func summed(_ bytes: [UInt8]) -> [UInt8] { bytes + SHA256.hash(data: bytes) }

    @Test func `a marker is read as it was written, with as many links as there may be`() throws {
        var random = SplitMix(seed: 3)
        let key = random.key()
        for count in [0, 1, 55, 56] {
            let links = (0..<count).map {
                KeyLink(from: random.key(), to: key.identifier, $0 % 2 == 0 ? .replaced : .joined)
            }
            let marker = SealedMarker(of: key, time: .max, links: links)
            #expect(marker.links == links && marker.bytes.count <= SealedMarker.limit)
            #expect(try SealedMarker(decoding: marker.bytes) == marker)
            #expect(marker.isGenuine(under: key.blobs))
        }
    }

    @Test func `a marker of more links than fit has the newest`() {
        var random = SplitMix(seed: 4)
        let key = random.key()
        let links = (0..<100).map { _ in KeyLink(from: random.key(), to: key.identifier, .replaced) }
        #expect(SealedMarker(of: key, time: 1, links: links).links == Array(links.prefix(56)))
    }

    @Test func `a marker with 10,000 links is refused, whether they are there or not`() {
        let link = Array(
            SealedMarker(
                of: .documented, time: 1,
                links: [
                    KeyLink(from: .former, to: AccountKey.documented.identifier, .replaced)
                ]
            ).bytes[25..<90])
        let begin = Array("UKVa".utf8) + [1, 2] + AccountKey.documented.identifier.bytes + [1, 1, 0x90, 0x4E]
        let all = begin + (0..<10_000).flatMap { _ in link } + [UInt8](repeating: 0, count: 32)
        #expect(throws: SealingFlaw.damaged("it is too long")) { try SealedMarker(decoding: Self.summed(all)) }
        let none = begin + [UInt8](repeating: 0, count: 32)
        #expect(throws: SealingFlaw.self) { try SealedMarker(decoding: Self.summed(none)) }
        let some = Array(begin.dropLast(2)) + [57] + (0..<57).flatMap { _ in link } + [UInt8](repeating: 0, count: 32)
        #expect(some.count + 32 <= SealedMarker.limit)
        #expect(throws: SealingFlaw.damaged("at byte 24 there are more than 56 links")) {
            try SealedMarker(decoding: Self.summed(some))
        }
    }

    @Test func `a marker that was altered is not genuine, and one of another key neither`() throws {
        let key = AccountKey.documented
        let marker = SealedMarker(of: key, time: 300, links: [KeyLink(from: .former, to: key.identifier, .joined)])
        for bit in 6 * 8..<(marker.bytes.count - 32) * 8 {
            var bytes = Array(marker.bytes.dropLast(32))
            bytes[bit / 8] ^= 1 << (bit % 8)
            // Some can no longer be decoded.
            guard let altered = try? SealedMarker(decoding: Self.summed(bytes)) else { continue }
            #expect(!altered.isGenuine(under: key.blobs), "bit \(bit)")
        }
        #expect(!marker.isGenuine(under: AccountKey.former.blobs))
        #expect(!marker.isGenuine(under: AccountKey.sample(secret: Array(1...16), 1).blobs))
    }

    @Test func `a link is proven by its first key alone, and not when anything of it is another's`() throws {
        let (first, second, third) = (AccountKey.former, AccountKey.documented, AccountKey.sample(3))
        let link = KeyLink(from: first, to: second.identifier, .replaced)
        #expect(link.isProven(by: first.blobs))
        #expect(!link.isProven(by: second.blobs) && !link.isProven(by: third.blobs))
        let bytes = link.note()
        for bit in 6 * 8..<(bytes.count - 32) * 8 {
            var altered = Array(bytes.dropLast(32))
            altered[bit / 8] ^= 1 << (bit % 8)
            let name = Array(altered[6..<39]).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
            guard let link = try? KeyLink(note: Self.summed(altered), named: name) else { continue }
            #expect(!link.isProven(by: first.blobs), "bit \(bit)")
        }
    }

    @Test func `a note under another's name is refused`() throws {
        let link = KeyLink(from: .former, to: AccountKey.documented.identifier, .replaced)
        #expect(try KeyLink(note: link.note(), named: link.noteName) == link)
        let other = KeyLink(from: .former, to: AccountKey.documented.identifier, .joined)
        #expect(throws: SealingFlaw.self) { try KeyLink(note: link.note(), named: other.noteName) }
    }

    @Test func `a note's name says everything but the proof`() throws {
        let link = KeyLink(from: .former, to: AccountKey.documented.identifier, .joined)
        let named = try #require(KeyLink(noteName: link.noteName))
        #expect((named.first, named.second, named.kind) == (link.first, link.second, link.kind))
        #expect(!named.isProven(by: AccountKey.former.blobs))
        let digits = link.noteName
        for name in [
            "", String(digits.dropLast()), digits + "0", String(digits.dropLast()) + "3", digits.uppercased() + "",
            String(digits.prefix(32)) + String(digits.prefix(32)) + "01", String(repeating: "é", count: 33),
        ] where name != digits {
            #expect(KeyLink(noteName: name) == nil, "\(name)")
        }
    }

    @Test func `what is read of an identifier is its 32 lower-case digits and nothing else`() {
        let identifier = KeyIdentifier(high: 0xAB, low: .max)
        #expect(KeyIdentifier("\(identifier)") == identifier)
        for text in ["", "\(identifier)0", "\(identifier)".uppercased(), "+" + "\(identifier)".dropFirst()] {
            #expect(KeyIdentifier(text) == nil, "\(text)")
        }
        #expect(KeyIdentifier(high: 0, low: .max) < KeyIdentifier(high: 1, low: 0))
    }
}
