// SPDX-License-Identifier: Apache-2.0

// Property lists as text, in the old style that macOS's `defaults` prints and reads:
//
//     { size = 14; names = (a, "b c"); data = <0a0b>; }

internal import Glibc
internal import PropertyList
internal import PropertyListFiles

/// Writes and reads old-style text.
enum OldStyleText {
    // MARK: Writing

    /// Returns a value as macOS's `defaults read` prints it. A container within another one repeats its indentation
    /// before the brace, as there.
    static func text(_ value: Value, indent: Int = 0) -> String {
        let space = String(repeating: "    ", count: indent + 1)
        let end = String(repeating: "    ", count: indent)
        switch value {
        case .boolean(let value): return value ? "1" : "0"
        case .integer(let value): return word("\(value)", indent)
        case .real(let value):
            return word("\(value)".hasSuffix(".0") ? String("\(value)".dropLast(2)) : "\(value)", indent)
        case .string(let text): return word(text.string, indent)
        case .data(let bytes): return "<" + bytes.map(hexadecimal).joined() + ">"
        case .date(let seconds): return word(date(seconds), indent)
        case .array(let values):
            if values.isEmpty { return "\(end)(\n\(end))" }
            return "\(end)(\n" + values.map { space + text($0, indent: indent + 1) }.joined(separator: ",\n")
                + "\n\(end))"
        case .dictionary(let values):
            let lines = values.sorted { $0.key < $1.key }.map { key, value in
                "\(space)\(quoted(key.string)) = \(text(value, indent: indent + 1));\n"
            }
            return "\(end){\n" + lines.joined() + end + "}"
        }
    }

    /// Returns a word; without quotes if it is the whole value, and then as it is unless a terminal would obey it.
    private static func word(_ text: String, _ indent: Int) -> String {
        indent > 0 ? quoted(text) : isatty(STDOUT_FILENO) == 1 ? shown(text) : text
    }

    /// Returns a text with hidden characters as macOS writes them: `\\U202e`.
    private static func shown(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: \.isHidden) else { return text }
        return text.unicodeScalars.reduce(into: "") { shown, scalar in
            guard scalar.isHidden, scalar != "\n", scalar != "\t" else { return shown.unicodeScalars.append(scalar) }
            shown += "\\U" + scalar.fourDigits
        }
    }

    /// Returns a date such as `2026-11-21 09:30:00 +0000`.
    private static func date(_ seconds: Double) -> String {
        guard let text = DateText.text(seconds.rounded(.down)) else { return "\(seconds)" }
        return text.replacing("T", with: " ").replacing("Z", with: " +0000")
    }

    private static func hexadecimal(_ byte: UInt8) -> String {
        (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }

    private static func quoted(_ text: String) -> String {
        let isPlain =
            !text.isEmpty
            && text.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
            }
        if isPlain { return text }
        let escaped = text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
        return "\"\(shown(escaped))\""
    }

    // MARK: Reading

    /// Returns the value of a text. A text that doesn't begin with a brace, parenthesis, angle or quote is a string.
    ///
    /// - Throws: ``Failure`` if the text begins like a property list and is broken.
    static func value(_ text: String) throws -> Value {
        guard let first = text.unicodeScalars.first, "{(<\"".unicodeScalars.contains(first) else {
            return .string(Text(text))
        }
        if let document = document(text) {
            do { return try FileFormat.xml.read(Array(document.utf8)) } catch { throw broken("\(error)") }
        }
        var reader = Reader(rest: Array(text.unicodeScalars)[...])
        let value = try reader.value(nesting: 0)
        reader.skipSpace()
        guard reader.rest.isEmpty else { throw broken("something follows it") }
        return value
    }

    /// Returns the XML of a text that is a document, or an element of one such as `<dict>…</dict>`, which macOS takes as
    /// well; `nil` for data such as `<da7a>`.
    private static func document(_ text: String) -> String? {
        guard text.first == "<" else { return nil }
        let name = text.dropFirst().prefix { $0.isLetter || $0 == "?" || $0 == "!" }
        switch name {
        case "?xml", "plist", "!DOCTYPE": return text
        case "dict", "array", "string", "integer", "real", "true", "false", "data", "date":
            return "<plist version=\"1.0\">\(text)</plist>"
        default: return nil
        }
    }

    private static func broken(_ reason: String) -> Failure {
        Failure(.usage, "The value is not a property list: \(reason)", advice: "Put -string before it if it is text.")
    }

    private struct Reader {
        var rest: ArraySlice<Unicode.Scalar>

        mutating func skipSpace() { rest = rest.drop { $0.properties.isWhitespace } }

        mutating func value(nesting: Int) throws -> Value {
            guard nesting <= Limits.standard.depth else { throw broken("it is nested too deep") }
            skipSpace()
            switch rest.first {
            case "{": return try dictionary(nesting: nesting)
            case "(": return try array(nesting: nesting)
            case "<": return try data()
            default: return .string(Text(try string()))
            }
        }

        private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
            skipSpace()
            guard rest.first == scalar else { return false }
            rest.removeFirst()
            return true
        }

        private mutating func dictionary(nesting: Int) throws -> Value {
            var values: [Text: Value] = [:]
            rest.removeFirst()
            while !take("}") {
                skipSpace()
                let key = Text(try string())
                guard take("=") else { throw broken("\"=\" is expected after the key \"\(key)\"") }
                values[key] = try value(nesting: nesting + 1)
                if !take(";") {
                    guard take("}") else { throw broken("\";\" is expected after the value of \"\(key)\"") }
                    break
                }
            }
            return .dictionary(values)
        }

        private mutating func array(nesting: Int) throws -> Value {
            var values: [Value] = []
            rest.removeFirst()
            while !take(")") {
                values.append(try value(nesting: nesting + 1))
                if !take(",") {
                    guard take(")") else { throw broken("\",\" or \")\" is expected in an array") }
                    break
                }
            }
            return .array(values)
        }

        private mutating func data() throws -> Value {
            rest.removeFirst()
            guard let end = rest.firstIndex(of: ">") else { throw broken("\">\" is missing") }
            let digits = rest[..<end].filter { !$0.properties.isWhitespace }.map { Character($0) }
            rest = rest[(end + 1)...]
            guard digits.count.isMultiple(of: 2), digits.allSatisfy(\.isHexDigit) else {
                throw broken("data is pairs of hexadecimal digits")
            }
            return .data(
                stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) })
        }

        private mutating func string() throws -> String {
            if rest.first == "\"" { return try quotedString() }
            let word = rest.prefix { !$0.properties.isWhitespace && !"{}()<>=;,\"".unicodeScalars.contains($0) }
            guard !word.isEmpty else {
                throw broken(rest.isEmpty ? "it has no end" : "\"\(rest[rest.startIndex])\" is not expected")
            }
            rest = rest[word.endIndex...]
            var text = ""
            text.unicodeScalars.append(contentsOf: word)
            return text
        }

        private mutating func quotedString() throws -> String {
            // macOS writes characters outside of ASCII as UTF-16: \U00e4.
            var units: [UInt16] = []
            rest.removeFirst()
            while let scalar = rest.popFirst() {
                if scalar == "\"" { return String(decoding: units, as: UTF16.self) }
                guard scalar == "\\" else {
                    units += String(scalar).utf16
                    continue
                }
                switch rest.popFirst() {
                case nil: throw broken("a quote has no end")
                case "U", "u": units.append(try codeUnit())
                case "n": units += "\n".utf16
                case "t": units += "\t".utf16
                case let escaped?: units += String(escaped).utf16
                }
            }
            throw broken("a quote has no end")
        }

        private mutating func codeUnit() throws -> UInt16 {
            let digits = String(String.UnicodeScalarView(rest.prefix(4)))
            guard digits.utf8.count == 4, let unit = UInt16(digits, radix: 16) else {
                throw broken("\\U takes four hexadecimal digits")
            }
            rest = rest.dropFirst(4)
            return unit
        }
    }
}
