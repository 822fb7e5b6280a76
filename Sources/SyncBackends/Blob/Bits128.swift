// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import PropertyList

/// 128 bits: an account's identifier, which is random, or the first half of a SHA-256.
struct Bits128: Hashable, Comparable, Sendable, CustomStringConvertible {
    let high: UInt64
    let low: UInt64

    /// Stands for "nothing"; no digest that anybody will see has this value.
    static let zero = Bits128(high: 0, low: 0)

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The first 128 bits of the SHA-256 of bytes.
    init(digestOf bytes: [UInt8]) {
        self.init(prefixOf: SHA256.bytes(of: bytes[...]))
    }

    /// The first 16 of at least 16 bytes, big-endian.
    init(prefixOf bytes: [UInt8]) {
        self.init(
            high: bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) },
            low: bytes.dropFirst(8).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        )
    }

    /// Reads the 32 hexadecimal digits of ``description``; `nil` for anything else.
    init?(_ description: String) {
        let digits = description.utf8
        guard digits.count == 32, digits.allSatisfy(\.isLowerHexDigit),
            let high = UInt64(description.prefix(16), radix: 16), let low = UInt64(description.suffix(16), radix: 16)
        else { return nil }
        self.init(high: high, low: low)
    }

    /// 32 lower-case hexadecimal digits.
    var description: String { high.hexDigits + low.hexDigits }

    static func < (a: Self, b: Self) -> Bool { a.high != b.high ? a.high < b.high : a.low < b.low }
}

extension SHA256 {
    /// The 32 bytes of the digest.
    static func bytes(of bytes: ArraySlice<UInt8>) -> [UInt8] {
        var hash = SHA256()
        bytes.withUnsafeBytes { hash.update(bufferPointer: $0) }
        return Array(hash.finalize())
    }
}

extension CanonicalEncoder {
    mutating func bits128(_ bits: Bits128) {
        fixed64(bits.high)
        fixed64(bits.low)
    }
}

extension CanonicalDecoder {
    mutating func bits128() throws(CanonicalDecodingError) -> Bits128 {
        Bits128(high: try fixed64(), low: try fixed64())
    }
}

extension UInt64 {
    /// 16 lower-case hexadecimal digits.
    var hexDigits: String {
        let digits = String(self, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

extension UInt8 {
    /// `0`–`9` or `a`–`f`.
    var isLowerHexDigit: Bool { (48...57).contains(self) || (97...102).contains(self) }
}
