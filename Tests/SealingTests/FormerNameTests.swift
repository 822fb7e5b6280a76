// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Sealing

/// Notes of the identifiers that an account had before its key.
@Suite struct FormerNameTests {
    private static let key = AccountKey.documented
    private static let plain = KeyIdentifier(high: 0xABC, low: 6)

    @Test func `a note says what its maker said, and only a holder of the key can have made it`() throws {
        let note = FormerName(Self.plain, of: Self.key)
        let read = try FormerName(note: note.note(), named: note.noteName)
        #expect(read == note && read.isProven(by: Self.key.blobs))
        #expect(!read.isProven(by: AccountKey.former.blobs))
        let byName = try #require(FormerName(noteName: note.noteName))
        #expect(byName.key == Self.key.identifier && byName.name == Self.plain)
        #expect(!byName.isProven(by: Self.key.blobs), "a name proves nothing")
    }

    @Test func `a link is no such note, nor the other way round, whatever its proof`() throws {
        let note = FormerName(AccountKey.former.identifier, of: Self.key)
        let link = KeyLink(from: Self.key, to: AccountKey.former.identifier, .joined)
        #expect(KeyLink(noteName: note.noteName) == nil && FormerName(noteName: link.noteName) == nil)
        #expect(throws: SealingFlaw.self) { try KeyLink(note: note.note(), named: note.noteName) }
        #expect(throws: SealingFlaw.self) { try FormerName(note: link.note(), named: link.noteName) }
        // The same proof, in a note of the other kind.
        var bytes = Array(link.note().dropLast(32))
        bytes[6 + 32] = 3
        let forged = try FormerName(note: SealedForm.summed(bytes), named: note.noteName)
        #expect(!forged.isProven(by: Self.key.blobs))
    }

    @Test func `what is cut, altered or under another name is damaged`() {
        let note = FormerName(Self.plain, of: Self.key)
        let bytes = note.note()
        for length in 0..<bytes.count {
            #expect(throws: SealingFlaw.self) {
                try FormerName(note: Array(bytes.prefix(length)), named: note.noteName)
            }
        }
        for index in bytes.indices {
            var altered = bytes
            altered[index] ^= 1
            #expect(throws: SealingFlaw.self) { try FormerName(note: altered, named: note.noteName) }
        }
        #expect(throws: SealingFlaw.self) {
            try FormerName(note: SealedForm.summed(bytes.dropLast(32) + [0]), named: note.noteName)
        }
        let other = FormerName(KeyIdentifier(high: 5, low: 7), of: Self.key)
        #expect(throws: SealingFlaw.self) { try FormerName(note: bytes, named: other.noteName) }
        for name in ["", note.noteName + "0", note.noteName.uppercased(), String(note.noteName.dropLast()) + "2"] {
            #expect(FormerName(noteName: name) == nil, "\(name)")
        }
    }
}
