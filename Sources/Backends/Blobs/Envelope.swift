// SPDX-License-Identifier: Apache-2.0

// Every blob, in this and every future format, begins with four bytes for its kind, the format, and how it is wrapped.
// Markers and heads end with the SHA-256 of everything before it, which tells damage from a newer format. Segments need
// no sum, because their names are digests.

internal import BackendSupport
internal import Crypto
internal import PropertyList

/// The beginning and end of a blob.
enum Envelope {
    static let format: UInt64 = 1
    /// The wrapping of a blob that is not encrypted.
    static let plain: UInt8 = 0
    /// The wrapping of a blob under the account's key (``Wrapping``).
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

    /// Checks the sum of a marker or head, and reads up to where the content begins.
    static func open(
        _ bytes: [UInt8], _ magic: [UInt8], in memory: DecodingMemory? = nil
    ) throws(BlobFlaw) -> CanonicalDecoder {
        guard bytes.count > magic.count + sumBytes, bytes.starts(with: magic) else { throw .foreign }
        let content = bytes.dropLast(sumBytes)
        guard SHA256.bytes(of: content) == Array(bytes.suffix(sumBytes)) else { throw .damaged("its sum is wrong") }
        return try readFormat(content, magic, memory)
    }

    /// Reads a segment, which has no sum, up to where the content begins.
    static func openNamed(
        _ bytes: [UInt8], _ magic: [UInt8], in memory: DecodingMemory?
    ) throws(BlobFlaw) -> CanonicalDecoder {
        guard bytes.starts(with: magic) else { throw .foreign }
        return try readFormat(bytes[...], magic, memory)
    }

    /// Whether a blob says that it is of this format and under some account's key. Checks nothing else.
    static func isSealed(_ bytes: [UInt8]) -> Bool {
        bytes.dropFirst(marker.count).prefix(2).elementsEqual([UInt8(format), sealed])
    }

    private static func readFormat(
        _ content: ArraySlice<UInt8>, _ magic: [UInt8], _ memory: DecodingMemory?
    ) throws(BlobFlaw) -> CanonicalDecoder {
        var decoder = CanonicalDecoder(content)
        decoder.takesMemory = memory?.take
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
    /// It doesn't begin like a blob of the expected kind.
    case foreign
    /// It has a format or wrapping that this version doesn't know.
    case tooNew
    /// It is in format 0, which no released version wrote.
    case tooOld
    /// It is under another account's key, or unencrypted in an encrypted account, or the reverse.
    case otherKey
    /// It is of the expected kind, but damaged; a clause says how.
    case damaged(String)

    /// Runs a decoder, and converts its error into damage.
    static func reading<T>(_ body: () throws(CanonicalDecodingError) -> T) throws(BlobFlaw) -> T {
        do { return try body() } catch { throw .damaged("at byte \(error.offset) \(error.reason)") }
    }
}
