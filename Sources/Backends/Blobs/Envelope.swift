// SPDX-License-Identifier: Apache-2.0

// What every blob begins with, in every format that there will be: four bytes that say what it is, the format, and
// how it is wrapped. One that is read by its name ends with the SHA-256 of all of it, so that damage is told from a
// newer format; one whose name is its digest needs no sum.

internal import BackendSupport
internal import Crypto
internal import PropertyList

/// What a blob begins and ends with.
enum Envelope {
    static let format: UInt64 = 1
    /// How a blob is wrapped: not at all.
    static let plain: UInt8 = 0
    /// Under the account's key (``Wrapping``).
    static let sealed: UInt8 = 2
    static let marker = Array("UKVa".utf8)
    static let head = Array("UKVh".utf8)
    static let bucket = Array("UKVs".utf8)
    static let vector = Array("UKVc".utf8)
    static let index = Array("UKVi".utf8)
    static let sumBytes = 32

    /// Begins a blob.
    static func begin(_ magic: [UInt8], capacity: Int = 0) -> CanonicalEncoder {
        var encoder = CanonicalEncoder(capacity: capacity)
        encoder.raw(magic)
        encoder.varint(format)
        encoder.byte(plain)
        return encoder
    }

    /// Appends the sum.
    static func seal(_ encoder: CanonicalEncoder) -> [UInt8] {
        encoder.bytes + SHA256.bytes(of: encoder.bytes[...])
    }

    /// Checks the sum and reads up to where the format's own part begins.
    static func open(_ bytes: [UInt8], _ magic: [UInt8]) throws(BlobFlaw) -> CanonicalDecoder {
        guard bytes.count > magic.count + sumBytes, bytes.starts(with: magic) else { throw .foreign }
        let content = bytes.dropLast(sumBytes)
        guard SHA256.bytes(of: content) == Array(bytes.suffix(sumBytes)) else { throw .damaged("its sum is wrong") }
        return try readFormat(content, magic)
    }

    /// Checks what a blob is, where its name is its sum.
    static func openNamed(_ bytes: [UInt8], _ magic: [UInt8]) throws(BlobFlaw) -> CanonicalDecoder {
        guard bytes.starts(with: magic) else { throw .foreign }
        return try readFormat(bytes[...], magic)
    }

    /// Whether a blob is one of this format under some account's key, of which nothing else was checked.
    static func isSealed(_ bytes: [UInt8]) -> Bool {
        bytes.dropFirst(marker.count).prefix(2).elementsEqual([UInt8(format), sealed])
    }

    private static func readFormat(_ content: ArraySlice<UInt8>, _ magic: [UInt8]) throws(BlobFlaw) -> CanonicalDecoder
    {
        var decoder = CanonicalDecoder(content)
        let (format, wrapping) = try BlobFlaw.reading { () throws(CanonicalDecodingError) in
            _ = try decoder.raw(magic.count)
            return (try decoder.varint(), try decoder.byte())
        }
        if format < Self.format { throw .tooOld }
        guard format == Self.format, wrapping == plain else { throw .tooNew }
        return decoder
    }
}

/// Why a blob can't be used.
package enum BlobFlaw: Error, Equatable {
    /// It is none of ours.
    case foreign
    /// It is in a format, or wrapped in a way, that this version does not know.
    case tooNew
    /// It is in format 0, which no released version wrote.
    case tooOld
    /// It is another account's: under another key, or in plain where this one is encrypted, or the reverse.
    case otherKey
    /// It is ours, and broken; a clause.
    case damaged(String)

    /// Takes what a decoder refuses for damage.
    static func reading<T>(_ body: () throws(CanonicalDecodingError) -> T) throws(BlobFlaw) -> T {
        do { return try body() } catch { throw .damaged("at byte \(error.offset) \(error.reason)") }
    }
}
