// SPDX-License-Identifier: Apache-2.0

/// Base64 with the usual alphabet and padding (RFC 4648, section 4).
public enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let padding = UInt8(ascii: "=")

    /// The text of bytes, in one line.
    public static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for index in 0...group.count { text.append(alphabet[bits >> (18 - 6 * index) & 63]) }
            for _ in group.count..<3 { text.append(padding) }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of a text, in which white space counts nothing; `nil` if it is no Base64.
    public static func decode(_ text: String) -> [UInt8]? {
        let symbols = text.utf8.filter { !" \t\r\n".utf8.contains($0) }
        guard symbols.count.isMultiple(of: 4) else { return nil }
        let padded = symbols.reversed().prefix(2).prefix { $0 == padding }.count
        var (bytes, bits, count): ([UInt8], UInt32, Int) = ([], 0, 0)
        bytes.reserveCapacity(symbols.count / 4 * 3)
        for symbol in symbols.dropLast(padded) {
            guard let value = value(symbol) else { return nil }
            (bits, count) = (bits << 6 | value, count + 6)
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return bytes
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
