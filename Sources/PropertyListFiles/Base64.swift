// SPDX-License-Identifier: Apache-2.0

/// Base64 with the usual alphabet and padding (RFC 4648, section 4).
package enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let padding = UInt8(ascii: "=")

    /// Encodes bytes as a single line.
    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        let alphabet = alphabet
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let count = min(3, bytes.count - start)
            var bits = 0
            for index in 0..<3 { bits = bits << 8 | (index < count ? Int(bytes[start + index]) : 0) }
            for index in 0...count { text.append(alphabet[bits >> (18 - 6 * index) & 63]) }
            for _ in count..<3 { text.append(padding) }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes a text, ignoring white space; `nil` if it is not Base64.
    package static func decode(_ text: String) -> [UInt8]? {
        var (bytes, bits, symbols, padded): ([UInt8], UInt32, Int, Int) = ([], 0, 0, 0)
        bytes.reserveCapacity(text.utf8.count / 4 * 3)
        for symbol in text.utf8 where !isSpace(symbol) {
            symbols += 1
            if symbol == padding {
                padded += 1
                continue
            }
            guard padded == 0, let value = value(symbol) else { return nil }
            bits = bits << 6 | value
            // The first symbol of four completes no byte.
            let spare = UInt32(8 - symbols % 4 * 2) % 8
            if symbols % 4 != 1 { bytes.append(UInt8(truncatingIfNeeded: bits >> spare)) }
        }
        return symbols.isMultiple(of: 4) && padded <= 2 ? bytes : nil
    }

    private static func isSpace(_ symbol: UInt8) -> Bool {
        symbol == 0x20 || symbol == 0x09 || symbol == 0x0D || symbol == 0x0A
    }

    private static func value(_ symbol: UInt8) -> UInt32? {
        switch symbol {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(symbol) - 65
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(symbol) - 71
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(symbol) + 4
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
