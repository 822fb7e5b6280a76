// SPDX-License-Identifier: Apache-2.0

// What all sealed blobs have in common: four bytes that say what it is, format 1, wrapping 02; and a sum at the end, if
// the blob's name doesn't depend on its bytes.

internal import Crypto
internal import PropertyList

/// Why a sealed blob can't be used.
package enum SealingFlaw: Error, Equatable {
    /// The blob is not this service's, or is of another kind.
    case foreign
    /// The blob is unencrypted.
    case plain
    /// The blob has a format, wrapping or scheme that this version does not know.
    case tooNew
    /// The blob is in format 0, which no released version wrote.
    case tooOld
    /// The blob is sealed with another key, which has this identifier.
    case otherKey(KeyIdentifier)
    /// The blob was altered or truncated, or has not arrived whole. The clause that says so has nothing of its content.
    case damaged(String)

    /// Runs a decoder, whose errors count as damage.
    static func reading<T>(_ body: () throws(CanonicalDecodingError) -> T) throws(SealingFlaw) -> T {
        do { return try body() } catch { throw .damaged("at byte \(error.offset) \(error.reason)") }
    }
}

/// The beginning and end that all sealed blobs share.
enum SealedForm {
    static let marker = Array("UKVa".utf8)
    static let head = Array("UKVh".utf8)
    static let segment = Array("UKVx".utf8)
    static let note = Array("UKVr".utf8)
    static let sumBytes = 32
    private static let format: UInt64 = 1
    private static let sealed: UInt8 = 2

    /// Begins to encode a blob.
    static func begin(_ magic: [UInt8], capacity: Int = 0) -> CanonicalEncoder {
        var encoder = CanonicalEncoder(capacity: capacity)
        encoder.raw(magic)
        encoder.varint(format)
        encoder.byte(sealed)
        return encoder
    }

    /// Returns the bytes with their sum at the end.
    static func summed(_ bytes: [UInt8]) -> [UInt8] { bytes + SHA256.hash(data: bytes) }

    /// Checks a blob's kind and sum, and decodes it up to the part that belongs to the wrapping.
    static func openSummed(_ bytes: [UInt8], _ magic: [UInt8]) throws(SealingFlaw) -> CanonicalDecoder {
        guard bytes.starts(with: magic) else { throw .foreign }
        return try open(try unsummed(bytes), magic)
    }

    /// Checks the sum.
    /// - Returns: the bytes before the sum.
    private static func unsummed(_ bytes: [UInt8]) throws(SealingFlaw) -> ArraySlice<UInt8> {
        guard bytes.count > sumBytes else { throw .damaged("it is cut off") }
        let content = bytes.dropLast(sumBytes)
        let sum = content.withUnsafeBytes { bytes in
            var hash = SHA256()
            hash.update(bufferPointer: bytes)
            return hash.finalize()
        }
        guard sum.elementsEqual(bytes.suffix(sumBytes)) else { throw .damaged("its sum is wrong") }
        return content
    }

    /// Checks a blob's kind, and decodes it up to the part that belongs to the wrapping.
    static func open(_ content: ArraySlice<UInt8>, _ magic: [UInt8]) throws(SealingFlaw) -> CanonicalDecoder {
        guard content.starts(with: magic) else { throw .foreign }
        var decoder = CanonicalDecoder(content)
        let (format, wrapping) = try SealingFlaw.reading { () throws(CanonicalDecodingError) in
            _ = try decoder.raw(magic.count)
            return (try decoder.varint(), try decoder.byte())
        }
        if format < Self.format { throw .tooOld }
        if format == Self.format, wrapping == 0 { throw .plain }
        guard format == Self.format, wrapping == sealed else { throw .tooNew }
        return decoder
    }
}
