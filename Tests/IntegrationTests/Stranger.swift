// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An attacker who has all that left the devices of an encrypted account, and searches it for what should be secret.
struct Stranger {
    /// The encoded forms of all that must not be found.
    private let forms: [(text: String, form: String, bytes: [UInt8])]

    /// - Parameters:
    ///   - texts: keys, values, identifiers and names, of at least four letters each.
    ///   - times: the times of writes, in microseconds since 1970.
    init(lookingFor texts: [String], times: [UInt64] = []) {
        forms =
            texts.flatMap { text in Self.forms(of: text).map { (text, $0, $1) } }
            + times.flatMap { time in Self.forms(of: time).map { ("\(time)", $0, $1) } }
    }

    private static func forms(of time: UInt64) -> [(String, [UInt8])] {
        let little = (0..<8).map { UInt8(truncatingIfNeeded: time >> (8 * $0)) }
        let varint = (0..<8).map { UInt8(truncatingIfNeeded: time >> (7 * $0)) | ($0 < 7 ? 0x80 : 0) }
        return forms(of: Array("\(time)".utf8)) + forms(of: little) + forms(of: varint)
    }

    private static func forms(of text: String) -> [(String, [UInt8])] {
        let little: [UInt8] = text.utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] }
        let big: [UInt8] = text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }
        return forms(of: Array(text.utf8)) + [("UTF-16", little), ("UTF-16, the other way round", big)]
    }

    private static func forms(of bytes: [UInt8]) -> [(String, [UInt8])] {
        let hex = bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        var forms: [(String, [UInt8])] = [
            ("plain", bytes), ("turned round", Array(bytes.reversed())), ("hex", Array(hex.utf8)),
            ("HEX", Array(hex.uppercased().utf8)),
        ]
        // At each alignment, without the first and last digits, which share bits with the neighbouring bytes.
        for before in 0..<3 where bytes.count >= 6 {
            let text = Data([UInt8](repeating: 0, count: before) + bytes).base64EncodedString()
            let digits = text.prefix { $0 != "=" }.dropFirst(before == 0 ? 0 : before + 1).dropLast()
            forms.append(("base64 after \(before)", Array(digits.utf8)))
            let other = digits.replacing("+", with: "-").replacing("/", with: "_")
            if other != digits { forms.append(("base64url after \(before)", Array(other.utf8))) }
        }
        return forms
    }

    /// Returns the forms that the bytes contain.
    func findings(in bytes: [UInt8]) -> [String] {
        // Searches for all forms at once, by their first two bytes, because there are hundreds.
        var starts = [[Int]](repeating: [], count: 1 << 16)
        for (index, form) in forms.enumerated() where form.bytes.count > 3 {
            starts[Int(form.bytes[0]) << 8 | Int(form.bytes[1])].append(index)
        }
        var found = Set<Int>()
        for place in bytes.indices.dropLast() {
            for index in starts[Int(bytes[place]) << 8 | Int(bytes[place + 1])]
            where bytes[place...].starts(with: forms[index].bytes) {
                found.insert(index)
            }
        }
        return found.sorted().map { "\(forms[$0].text) (\(forms[$0].form))" }
    }
}
