// SPDX-License-Identifier: Apache-2.0

/// The percent-encoding of addresses (RFC 3986, section 2).
package enum PercentCoding {
    private static let unreserved = Set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~".utf8)

    /// What a segment of a path may contain besides unreserved characters, and the sign of what is encoded already.
    package static let partOfPath = "!$&'()*+,;=:@%"

    /// Encodes all but unreserved characters.
    /// - Parameter kept: other characters that stay as they are.
    package static func encode(_ text: some StringProtocol, keeping kept: String = "") -> String {
        var encoded = ""
        for byte in text.utf8 {
            if unreserved.contains(byte) || kept.utf8.contains(byte) {
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                encoded += "%" + (digits.count == 1 ? "0" : "") + digits
            }
        }
        return encoded
    }

    /// Decodes a text; `nil` if a percent sign is not followed by two hexadecimal digits, or the bytes are not UTF-8.
    package static func decode(_ text: some StringProtocol) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, digits.allSatisfy(Self.isHexadecimal),
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool { Character(Unicode.Scalar(byte)).isHexDigit }
}
