// SPDX-License-Identifier: Apache-2.0

package import PropertyList

/// Reads JSON. A number without fraction and exponent is an integer, any other a real.
package struct JSONReader {
    private var scanner: TextScanner

    /// Reads a whole text.
    package static func read(_ bytes: [UInt8]) throws(FileError) -> Value {
        var reader = JSONReader(scanner: try TextScanner(bytes))
        let value = try reader.value(nesting: 0)
        reader.scanner.skipSpace()
        if !reader.scanner.isAtEnd {
            throw reader.scanner.failure("the value is complete, and \(reader.scanner.found) follows")
        }
        return value
    }

    private mutating func value(nesting: Int) throws(FileError) -> Value {
        scanner.skipSpace()
        let start = scanner.position
        switch scanner.next {
        case UInt8(ascii: "{"): return try tagged(try object(nesting: try deeper(nesting)), at: start)
        case UInt8(ascii: "["): return .array(try array(nesting: try deeper(nesting)))
        case UInt8(ascii: "\""): return .string(Text(try string()))
        case UInt8(ascii: "-"): return try number()
        case let byte? where isDigit(byte): return try number()
        default: return try word()
        }
    }

    private func deeper(_ nesting: Int) throws(FileError) -> Int {
        guard nesting < deepestNesting else {
            throw scanner.failure("containers are nested more than \(deepestNesting) deep")
        }
        return nesting + 1
    }

    private mutating func word() throws(FileError) -> Value {
        if scanner.take("true") { return .boolean(true) }
        if scanner.take("false") { return .boolean(false) }
        if scanner.take("null") {
            throw scanner.failure(at: scanner.position - 4, "a property list has no null; leave the key out")
        }
        throw scanner.failure("a value is expected, and there is \(scanner.found)")
    }

    // MARK: Containers

    private mutating func array(nesting: Int) throws(FileError) -> [Value] {
        scanner.advance()
        var values: [Value] = []
        scanner.skipSpace()
        if scanner.take("]") { return values }
        while true {
            values.append(try value(nesting: nesting))
            scanner.skipSpace()
            if scanner.take("]") { return values }
            try expect(",", "a comma or ] is expected")
        }
    }

    private mutating func object(nesting: Int) throws(FileError) -> [Text: Value] {
        scanner.advance()
        var values: [Text: Value] = [:]
        scanner.skipSpace()
        if scanner.take("}") { return values }
        while true {
            scanner.skipSpace()
            let start = scanner.position
            guard scanner.isNext("\"") else {
                throw scanner.failure("a key in quotes is expected, not \(scanner.found)")
            }
            let key = Text(try string())
            scanner.skipSpace()
            try expect(":", "a colon is expected after the key")
            guard values.updateValue(try value(nesting: nesting), forKey: key) == nil else {
                throw scanner.failure(at: start, "the key \"\(key)\" comes twice")
            }
            scanner.skipSpace()
            if scanner.take("}") { return values }
            try expect(",", "a comma or } is expected")
        }
    }

    private mutating func expect(_ text: StaticString, _ reason: String) throws(FileError) {
        guard scanner.take(text) else { throw scanner.failure("\(reason), and there is \(scanner.found)") }
    }

    // MARK: Scalars

    private mutating func number() throws(FileError) -> Value {
        let start = scanner.position
        var isInteger = true
        _ = scanner.take("-")
        guard let first = scanner.next, isDigit(first) else { throw scanner.failure("a digit is expected") }
        if scanner.take("0"), let byte = scanner.next, isDigit(byte) {
            throw scanner.failure(at: start, "a number doesn't begin with 0")
        }
        _ = scanner.take(while: isDigit)
        if scanner.take(".") {
            isInteger = false
            try digits("after the point")
        }
        if scanner.isNext("e") || scanner.isNext("E") {
            isInteger = false
            scanner.advance()
            if !scanner.take("+") { _ = scanner.take("-") }
            try digits("in the exponent")
        }
        let text = String(decoding: scanner.bytes[start..<scanner.position], as: UTF8.self)
        if isInteger, let integer = Int64(text) { return .integer(integer) }
        if !isInteger, let real = Double(text), real.isFinite { return .real(real) }
        throw scanner.failure(
            at: start, isInteger ? "an integer has 64 bits, and this is beyond" : "the number is too large for a real")
    }

    private func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

    private mutating func digits(_ place: String) throws(FileError) {
        if scanner.take(while: isDigit).isEmpty { throw scanner.failure("a digit is expected \(place)") }
    }

    private mutating func string() throws(FileError) -> String {
        let start = scanner.position
        scanner.advance()
        var text = ""
        while true {
            text += scanner.take { $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
            if scanner.take("\"") { break }
            if scanner.take("\\") {
                text.unicodeScalars.append(try escape())
            } else if scanner.isAtEnd {
                throw scanner.failure(at: start, "the string that begins here has no end")
            } else {
                throw scanner.failure("a control character in a string is written as \\u and four digits")
            }
        }
        return text
    }

    private static let escapes: [UInt8: Unicode.Scalar] = [
        UInt8(ascii: "\""): "\"", UInt8(ascii: "\\"): "\\", UInt8(ascii: "/"): "/", UInt8(ascii: "b"): "\u{8}",
        UInt8(ascii: "f"): "\u{C}", UInt8(ascii: "n"): "\n", UInt8(ascii: "r"): "\r", UInt8(ascii: "t"): "\t",
    ]

    private mutating func escape() throws(FileError) -> Unicode.Scalar {
        if let scalar = scanner.next.flatMap({ Self.escapes[$0] }) {
            scanner.advance()
            return scalar
        }
        guard scanner.take("u") else { throw scanner.failure("\\ and \(scanner.found) mean nothing in a string") }
        let start = scanner.position
        let first = try fourDigits()
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard first < 0xDC00, scanner.take("\\u") else {
            throw scanner.failure(at: start, "half of a surrogate pair is not a character")
        }
        let second = try fourDigits()
        guard (0xDC00...0xDFFF).contains(second),
            let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        else { throw scanner.failure(at: start, "half of a surrogate pair is not a character") }
        return scalar
    }

    private mutating func fourDigits() throws(FileError) -> UInt32 {
        let start = scanner.position
        let digits = scanner.bytes[start..<min(start + 4, scanner.bytes.count)]
        guard digits.count == 4, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
            let number = UInt32(String(decoding: digits, as: UTF8.self), radix: 16)
        else { throw scanner.failure("four hexadecimal digits are expected after \\u") }
        scanner.advance(4)
        return number
    }

    // MARK: Tags

    /// Returns the value that a tagged object represents, or the dictionary itself.
    private func tagged(_ object: [Text: Value], at start: Int) throws(FileError) -> Value {
        guard object.count == 1, let (key, value) = object.first, let tag = JSONTag(rawValue: key.string) else {
            return .dictionary(object)
        }
        guard let meaning = tag.meaning(of: value) else {
            throw scanner.failure(at: start, "\"\(tag.rawValue)\" doesn't go with this value: \(tag.expectation)")
        }
        return meaning
    }
}

extension JSONTag {
    fileprivate func meaning(of value: Value) -> Value? {
        switch (self, value) {
        case (.date, .string(let text)): DateText.seconds(text.string).map(Value.date)
        case (.date, .real(let seconds)): .date(seconds)
        case (.date, .integer(let seconds)): .date(Double(seconds))
        case (.data, .string(let text)): Base64.decode(text.string).map(Value.data)
        case (.real, .string(let text)): RealText.real(text.string).map(Value.real)
        case (.dictionary, .array(let entries)): dictionary(entries)
        default: nil
        }
    }

    private func dictionary(_ entries: [Value]) -> Value? {
        guard entries.count.isMultiple(of: 2) else { return nil }
        var values: [Text: Value] = [:]
        for index in stride(from: 0, to: entries.count, by: 2) {
            guard case .string(let key) = entries[index],
                values.updateValue(entries[index + 1], forKey: key) == nil
            else { return nil }
        }
        return .dictionary(values)
    }

    fileprivate var expectation: String {
        switch self {
        case .date: "it takes a time such as \"2026-11-21T09:30:00Z\", or seconds since 2001"
        case .data: "it takes Base64"
        case .real: "it takes \"nan\", \"inf\", \"-inf\" or 16 hexadecimal digits"
        case .dictionary: "it takes an array of keys and values, alternating"
        }
    }
}
