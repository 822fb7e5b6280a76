// SPDX-License-Identifier: Apache-2.0

/// 128 bits: an account's identifier, which is random, or the first half of a SHA-256.
package struct Bits128: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let high: UInt64
    package let low: UInt64

    /// Stands for "nothing"; no digest that anybody will see has this value.
    package static let zero = Bits128(high: 0, low: 0)

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The first 16 of at least 16 bytes, big-endian.
    package init(prefixOf bytes: [UInt8]) {
        self.init(
            high: bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) },
            low: bytes.dropFirst(8).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        )
    }

    /// Reads the 32 hexadecimal digits of ``description``; `nil` for anything else.
    package init?(_ description: String) {
        let digits = description.utf8
        guard digits.count == 32, digits.allSatisfy(\.isLowerHexDigit),
            let high = UInt64(description.prefix(16), radix: 16), let low = UInt64(description.suffix(16), radix: 16)
        else { return nil }
        self.init(high: high, low: low)
    }

    /// 32 lower-case hexadecimal digits.
    package var description: String { high.hexDigits + low.hexDigits }

    package static func < (a: Self, b: Self) -> Bool { a.high != b.high ? a.high < b.high : a.low < b.low }
}

extension UInt64 {
    /// 16 lower-case hexadecimal digits.
    package var hexDigits: String {
        let digits = String(self, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

extension UInt8 {
    /// `0`–`9` or `a`–`f`.
    package var isLowerHexDigit: Bool { (48...57).contains(self) || (97...102).contains(self) }
}
