// SPDX-License-Identifier: Apache-2.0

/// Where an account is, for people.
struct RemotePlace {
    /// The server's name, or the folder.
    let name: String

    init(_ url: String) {
        guard let colon = url.firstRange(of: "://") else {
            name = url.shown
            return
        }
        let rest = url[colon.upperBound...]
        name = rest.hasPrefix("/") ? (PercentText.decode(rest) ?? String(rest)).shown : Self.host(rest).shown
    }

    private static func host(_ rest: Substring) -> String {
        let members = rest.prefix { !"/?#".contains($0) }.split(separator: ",")
        return members.first.map(String.init) ?? String(rest)
    }
}

/// Texts as parts of addresses.
enum PercentText {
    /// Encodes all but unreserved characters and slashes.
    static func encode(_ text: String, keepingSlashes: Bool = false) -> String {
        var result = ""
        for byte in text.utf8 {
            let scalar = Unicode.Scalar(byte)
            if byte < 0x80, isPlain(scalar) || (keepingSlashes && scalar == "/") {
                result.unicodeScalars.append(scalar)
            } else {
                result += (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }

    /// `nil` if a percent sign is not followed by two digits, or the bytes are no text.
    static func decode(_ text: some StringProtocol) -> String? {
        var bytes: [UInt8] = []
        var rest = Substring(text).utf8
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = Substring(rest.prefix(2))
            guard digits.count == 2, digits.allSatisfy(\.isHexDigit), let value = UInt8(digits, radix: 16) else {
                return nil
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "A"..."Z", "a"..."z", "0"..."9", "-", ".", "_", "~": true
        default: false
        }
    }
}
