// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import SeededRandom
import Testing

@testable import Sealing

@Suite struct SealedBlobTests {
    private static let keys = AccountKey.documented.blobs
    private static let content = Array("UKVs, a list of groceries".utf8)

    private static func head(
        _ content: [UInt8] = content, origin: UInt64 = 5, sequence: UInt64 = 0, random: (UInt64, UInt64) = (1, 2),
        unlikeLength previous: Int? = nil, _ keys: BlobKeys = keys
    ) -> [UInt8] {
        SealedBlob.seal(
            head: content, origin: origin, sequence: sequence, random: random, unlikeLength: previous, keys)
    }

    private static func summed(_ bytes: [UInt8]) -> [UInt8] { bytes + SHA256.hash(data: bytes) }

    @Test func `what is sealed is opened again, whatever its length`() throws {
        var random = SplitMix(seed: 2)
        for length in Array(0...600) + [1000, 4096, 61_440, 1 << 20] {
            let content = random.bytes(length)
            let (segment, name) = SealedBlob.seal(segment: content, Self.keys)
            let opened = try SealedBlob(segment: segment, Self.keys)
            #expect(opened.content == content && Array(opened.salt.prefix(16)) == name)
            #expect(
                segment.count == 70
                    + SealedBlob.padded(opened.content.count + (length < 128 ? 1 : length < 16384 ? 2 : 3)))
            let head = Self.head(content, origin: random.next())
            #expect(try SealedBlob(head: head, Self.keys).content == content)
        }
    }

    @Test func `the largest content has room, and one byte more is refused`() throws {
        let largest = [UInt8](repeating: 7, count: SealedBlob.Limit.segmentContent)
        let (bytes, _) = SealedBlob.seal(segment: largest, Self.keys)
        #expect(bytes.count == SealedBlob.Limit.segment)
        #expect(try SealedBlob(segment: bytes, Self.keys).content == largest)
        let (more, _) = SealedBlob.seal(segment: largest + [7], Self.keys)
        #expect(throws: SealingFlaw.damaged("its content is too long")) { try SealedBlob(segment: more, Self.keys) }
        let head = Self.head([UInt8](repeating: 7, count: SealedBlob.Limit.headContent), sequence: 15)
        #expect(head.count == SealedBlob.Limit.head - 1)
        #expect(throws: SealingFlaw.damaged("it is too long")) {
            try SealedBlob(head: [UInt8](repeating: 0, count: SealedBlob.Limit.head + 1), Self.keys)
        }
    }

    @Test func `a blob with any one bit flipped is refused, also with its sum made right`() {
        let segment = SealedBlob.seal(segment: Self.content, Self.keys).bytes
        for bit in 0..<segment.count * 8 {
            var bytes = segment
            bytes[bit / 8] ^= 1 << (bit % 8)
            #expect(throws: SealingFlaw.self) { try SealedBlob(segment: bytes, Self.keys) }
        }
        let head = Self.head()
        for bit in 0..<(head.count - 32) * 8 {
            var bytes = Array(head.dropLast(32))
            bytes[bit / 8] ^= 1 << (bit % 8)
            #expect(throws: SealingFlaw.self) { try SealedBlob(head: Self.summed(bytes), Self.keys) }
        }
    }

    @Test func `a blob that is cut anywhere is refused, also with its sum made right`() {
        let segment = SealedBlob.seal(segment: Self.content, Self.keys).bytes
        for length in segment.indices {
            #expect(throws: SealingFlaw.self) { try SealedBlob(segment: Array(segment.prefix(length)), Self.keys) }
        }
        let head = Self.head().dropLast(32)
        for length in 0..<head.count {
            let bytes = Array(head.prefix(length))
            #expect(throws: SealingFlaw.self) { try SealedBlob(head: bytes, Self.keys) }
            #expect(throws: SealingFlaw.self) { try SealedBlob(head: Self.summed(bytes), Self.keys) }
        }
    }

    @Test func `a blob of another account, of another key and of a replaced one is not opened`() {
        let other = AccountKey.former
        let (bytes, _) = SealedBlob.seal(segment: Self.content, other.blobs)
        #expect(throws: SealingFlaw.otherKey(other.identifier)) { try SealedBlob(segment: bytes, Self.keys) }
        // With the right identifier put in, and with the same secret under another identifier.
        let identifier = AccountKey.documented.identifier
        let renamed = Array(bytes[..<6]) + identifier.bytes + bytes[22...]
        #expect(throws: SealingFlaw.self) { try SealedBlob(segment: renamed, Self.keys) }
        let moved = AccountKey.sample(9)
        let (sameSecret, _) = SealedBlob.seal(segment: Self.content, moved.blobs)
        #expect(throws: SealingFlaw.otherKey(moved.identifier)) { try SealedBlob(segment: sameSecret, Self.keys) }
        let put = Array(sameSecret[..<6]) + identifier.bytes + sameSecret[22...]
        #expect(throws: SealingFlaw.self) { try SealedBlob(segment: put, Self.keys) }
    }

    @Test func `a segment under another's name has another name in it`() throws {
        let (first, firstName) = SealedBlob.seal(segment: [1], Self.keys)
        let (_, secondName) = SealedBlob.seal(segment: [2], Self.keys)
        let found = try SealedBlob(segment: first, Self.keys)
        #expect(Array(found.salt.prefix(16)) == firstName && firstName != secondName)
    }

    @Test func `a head under another origin is not opened, and a copy still says whose it is`() throws {
        let head = Self.head(origin: 5)
        var bytes = Array(head.dropLast(32))
        bytes[29] = 6
        #expect(throws: SealingFlaw.self) { try SealedBlob(head: Self.summed(bytes), Self.keys) }
        #expect(try SealedBlob(head: head, Self.keys).kind == .head(origin: 5))
    }

    @Test func `a head is no segment and a segment no head`() {
        let (segment, _) = SealedBlob.seal(segment: Self.content, Self.keys)
        #expect(throws: SealingFlaw.foreign) { try SealedBlob(head: Self.summed(segment), Self.keys) }
        #expect(throws: SealingFlaw.foreign) { try SealedBlob(segment: Self.head(), Self.keys) }
    }

    @Test func `a blob says under which key it is, as far as that is there and the blob is of its kind`() throws {
        let (head, segment) = (Self.head(), SealedBlob.seal(segment: Self.content, Self.keys).bytes)
        #expect(SealedBlob.key(ofHead: head) == Self.keys.identifier)
        #expect(SealedBlob.key(ofSegment: segment) == Self.keys.identifier)
        #expect(SealedBlob.key(ofHead: segment) == nil && SealedBlob.key(ofSegment: head) == nil)
        #expect(SealedBlob.key(ofHead: Array(head.prefix(21))) == nil)
        #expect(SealedBlob.key(ofHead: Array(head.prefix(22))) == Self.keys.identifier)
        #expect(SealedBlob.key(ofHead: Array(head.prefix(5)) + [0] + head.dropFirst(6)) == nil, "an unencrypted one")
    }

    @Test func `equal segments have equal bytes, and others share nothing behind the header`() {
        let (first, _) = SealedBlob.seal(segment: Self.content, Self.keys)
        #expect(first == SealedBlob.seal(segment: Self.content, Self.keys).bytes)
        let (second, _) = SealedBlob.seal(segment: Self.content + [0], Self.keys)
        #expect(first[..<22] == second[..<22])
        #expect(zip(first[22...], second[22...]).filter(==).count < 20)
    }

    @Test func `heads of equal content differ by their random bytes, and equal ones are one box`() {
        #expect(Self.head(random: (1, 2)) == Self.head(random: (1, 2)))
        #expect(Self.head(random: (1, 2)) != Self.head(random: (1, 3)))
        #expect(Self.head(random: (1, 2))[30..<62] != Self.head(random: (1, 3))[30..<62])
    }

    @Test func `a head never has the length of the one before it`() throws {
        for sequence: UInt64 in 0..<40 {
            let head = Self.head(sequence: sequence)
            #expect(head.count == 110 + 256 + Int(sequence % 16))
            let next = Self.head(sequence: sequence, unlikeLength: head.count)
            #expect(next.count == 110 + 256 + 16)
            #expect(try SealedBlob(head: next, Self.keys).content == Self.content)
        }
    }

    @Test func `an unencrypted blob is said to be unencrypted`() {
        let plain = Self.summed(Array("UKVh".utf8) + [1, 0] + [UInt8](repeating: 0, count: 400))
        #expect(throws: SealingFlaw.plain) { try SealedBlob(head: plain, Self.keys) }
    }

    @Test func `between one byte and 16 MiB there are fewer than 400 lengths`() {
        var lengths: Set<Int> = []
        var length = 1
        while length <= 16 << 20 {
            let padded = SealedBlob.padded(length)
            #expect(padded >= length && padded.isMultiple(of: 256))
            #expect(padded - length < max(256, length / 8 + 1))
            lengths.insert(padded)
            length = padded + 1
        }
        #expect(lengths.count < 400)
    }

    @Test func `a locked account has nothing to write`() {
        let phrase = RecoveryPhrase(of: .documented)
        #expect(Protection.locked.wrapping == nil && Protection.phrase(phrase).wrapping == nil)
    }

    @Test func `a wrapping names segments and buckets as the document has it`() throws {
        let row = try #require(try table("## Vectors of blobs").first { $0[0] == "bucket" })
        let plain = Wrapping.plain.segment(try octets(row[1]))
        #expect(try hexadecimal(plain.name) == row[2] && plain.bytes == octets(row[1]))
        let sealed = Wrapping.sealed(Self.keys).segment(try octets(row[1]))
        #expect(try SealedBlob(segment: sealed.bytes, Self.keys).content == plain.bytes)
        // `color` is in the bucket 01 of the document's second base.
        #expect(Wrapping.plain.bucketHash(of: Array("color".utf8)) >> 14 == 1)
        #expect(Wrapping.sealed(Self.keys).bucketHash(of: Array("color".utf8)) == 0x2A82)
    }
}
