// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

/// The identifier of an account's key, and so of the account: 16 random bytes, which are no secret.
package struct KeyIdentifier: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Parses 32 lower-case hexadecimal digits; `nil` for anything else.
    package init?(_ digits: some StringProtocol) {
        let bytes = digits.utf8
        guard bytes.count == 32, bytes.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) }),
            let high = UInt64(digits.prefix(16), radix: 16), let low = UInt64(digits.suffix(16), radix: 16)
        else { return nil }
        self.init(high: high, low: low)
    }

    /// The 16 bytes.
    package var bytes: [UInt8] {
        var encoder = CanonicalEncoder()
        encoder.keyIdentifier(self)
        return encoder.bytes
    }

    /// 32 lower-case hexadecimal digits.
    package var description: String {
        [high, low].map { half in
            let digits = String(half, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    package static func < (a: Self, b: Self) -> Bool { (a.high, a.low) < (b.high, b.low) }
}

extension CanonicalEncoder {
    mutating func keyIdentifier(_ identifier: KeyIdentifier) {
        fixed64(identifier.high)
        fixed64(identifier.low)
    }
}

extension CanonicalDecoder {
    mutating func keyIdentifier() throws(CanonicalDecodingError) -> KeyIdentifier {
        KeyIdentifier(high: try fixed64(), low: try fixed64())
    }
}
