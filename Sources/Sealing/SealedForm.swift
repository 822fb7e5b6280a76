// SPDX-License-Identifier: Apache-2.0

// What all sealed blobs have in common: four bytes that say what it is, format 1, wrapping 02; and a sum at the end of
// those that are read by a name that does not depend on their bytes.

internal import Crypto
internal import PropertyList

/// Why a sealed blob can't be used.
package enum SealingFlaw: Error, Equatable {
    /// It is none of ours, or of another kind.
    case foreign
    /// It is in plain.
    case plain
    /// It is in a format, of a wrapping or of a scheme that this version does not know.
    case tooNew
    /// It is in format 0, which no released version wrote.
    case tooOld
    /// It is sealed with the key of this identifier, which is another.
    case otherKey(KeyIdentifier)
    /// It was altered, cut, or is not whole yet; a clause. Nothing of its content is in it.
    case damaged(String)

    /// Takes what a decoder refuses for damage.
    static func reading<T>(_ body: () throws(CanonicalDecodingError) -> T) throws(SealingFlaw) -> T {
        do { return try body() } catch { throw .damaged("at byte \(error.offset) \(error.reason)") }
    }
}

/// What a sealed blob begins and ends with.
enum SealedForm {
    static let marker = Array("UKVa".utf8)
    static let head = Array("UKVh".utf8)
    static let segment = Array("UKVx".utf8)
    static let note = Array("UKVr".utf8)
    static let sumBytes = 32
    private static let format: UInt64 = 1
    private static let sealed: UInt8 = 2

    /// Begins a blob.
    static func begin(_ magic: [UInt8], capacity: Int = 0) -> CanonicalEncoder {
        var encoder = CanonicalEncoder(capacity: capacity)
        encoder.raw(magic)
        encoder.varint(format)
        encoder.byte(sealed)
        return encoder
    }

    /// The bytes with their sum at the end.
    static func summed(_ bytes: [UInt8]) -> [UInt8] { bytes + SHA256.hash(data: bytes) }

    /// Checks what a blob is, and its sum, and reads up to where the wrapping's own part begins.
    static func openSummed(_ bytes: [UInt8], _ magic: [UInt8]) throws(SealingFlaw) -> CanonicalDecoder {
        guard bytes.starts(with: magic) else { throw .foreign }
        return try open(try unsummed(bytes), magic)
    }

    /// Checks the sum.
    /// - Returns: what is before it.
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

    /// Reads up to where the wrapping's own part begins.
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
