// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

/// Reads Apple's XML property lists. It refuses entities that the file defines, a few lines of which could fill the
/// memory.
struct XMLReader {
    private var scanner: TextScanner

    static func read(_ bytes: [UInt8]) throws(FileError) -> Value {
        var reader = XMLReader(scanner: try TextScanner(bytes))
        try reader.prolog()
        guard let tag = try reader.tag(), tag.name == "plist", tag.kind == .start else {
            throw reader.scanner.failure("<plist> is expected, and there is \(reader.scanner.found)")
        }
        let value = try reader.value(nesting: 0)
        try reader.end("plist")
        try reader.skipComments()
        guard reader.scanner.isAtEnd else {
            throw reader.scanner.failure("the property list is complete, and \(reader.scanner.found) follows")
        }
        return value
    }

    // MARK: Around the values

    private mutating func prolog() throws(FileError) {
        let start = scanner.position
        if scanner.take("<?xml") {
            let text = scanner.take { $0 != UInt8(ascii: ">") }
            // Others take long to search.
            guard text.utf8.count <= 1000 else { throw scanner.failure(at: start, "the declaration is too long") }
            let declaration = text.lowercased()
            if declaration.contains("encoding="), !declaration.contains("utf-8"), !declaration.contains("us-ascii") {
                throw scanner.failure(at: start, "only files in UTF-8 are read; convert this one")
            }
            guard scanner.take(">") else { throw scanner.failure(at: start, "the declaration has no end") }
        }
        try skipComments()
        let type = scanner.position
        if scanner.take("<!DOCTYPE") {
            _ = scanner.take { $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "[") }
            guard scanner.take(">") else {
                throw scanner.failure(at: type, "a document type with declarations of its own is not read")
            }
        }
        try skipComments()
    }

    private mutating func skipComments() throws(FileError) {
        scanner.skipSpace()
        while true {
            let start = scanner.position
            guard scanner.take("<!--") else { return }
            guard scanner.skip(past: "-->") else { throw scanner.failure(at: start, "the comment has no end") }
            scanner.skipSpace()
        }
    }

    private struct Tag {
        enum Kind { case start, end, empty }
        let name: String
        let kind: Kind
        let position: Int

        /// The tag as text, without attributes.
        var text: String { "<\(kind == .end ? "/" : "")\(name)\(kind == .empty ? "/" : "")>" }
    }

    /// Reads the next tag; `nil` if something else is next.
    private mutating func tag() throws(FileError) -> Tag? {
        try skipComments()
        let start = scanner.position
        guard scanner.take("<") else { return nil }
        let isEnd = scanner.take("/")
        let name = scanner.take { !" \t\r\n/>".utf8.contains($0) }
        let attributes = scanner.take { $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "<") }
        guard (1...Self.longestName).contains(name.utf8.count), scanner.take(">") else {
            throw scanner.failure(at: start, "the tag <\(name) has no end")
        }
        let kind: Tag.Kind = isEnd ? .end : attributes.utf8.last == UInt8(ascii: "/") ? .empty : .start
        return Tag(name: name, kind: kind, position: start)
    }

    private mutating func end(_ name: String) throws(FileError) {
        guard let tag = try tag() else {
            throw scanner.failure("</\(name)> is expected, and there is \(scanner.found)")
        }
        guard tag.kind == .end, tag.name == name else {
            throw scanner.failure(at: tag.position, "</\(name)> is expected, and there is \(tag.text)")
        }
    }

    /// The longest name of a tag or an entity, in bytes.
    private static let longestName = 255
    /// The longest text of a number or a date, in bytes, with the space around it.
    private static let longestScalar = 1024

    // MARK: Values

    private mutating func value(nesting: Int) throws(FileError) -> Value {
        guard let tag = try tag() else { throw scanner.failure("a value is expected, and there is \(scanner.found)") }
        return try value(tag, nesting: nesting)
    }

    private mutating func value(_ tag: Tag, nesting: Int) throws(FileError) -> Value {
        guard tag.kind != .end else {
            throw scanner.failure(at: tag.position, "a value is expected, and there is \(tag.text)")
        }
        switch tag.name {
        case "dict", "array":
            guard nesting < deepestNesting else {
                throw scanner.failure(at: tag.position, "containers are nested more than \(deepestNesting) deep")
            }
            if tag.kind == .empty { return tag.name == "dict" ? .dictionary([:]) : .array([]) }
            return tag.name == "dict"
                ? .dictionary(try dictionary(nesting: nesting + 1)) : .array(try array(nesting: nesting + 1))
        case "true", "false":
            if tag.kind == .start { try end(tag.name) }
            return .boolean(tag.name == "true")
        default:
            return try scalar(tag)
        }
    }

    private mutating func array(nesting: Int) throws(FileError) -> [Value] {
        var values: [Value] = []
        while let tag = try tag() {
            if tag.kind == .end && tag.name == "array" { return values }
            values.append(try value(tag, nesting: nesting))
        }
        throw scanner.failure("a value or </array> is expected, and there is \(scanner.found)")
    }

    private mutating func dictionary(nesting: Int) throws(FileError) -> [Text: Value] {
        var values: [Text: Value] = [:]
        while let tag = try tag() {
            if tag.kind == .end && tag.name == "dict" { return values }
            guard tag.name == "key", tag.kind != .end else {
                throw scanner.failure(at: tag.position, "<key> or </dict> is expected, and there is \(tag.text)")
            }
            let key = Text(try content(tag))
            guard values.updateValue(try value(nesting: nesting), forKey: key) == nil else {
                throw scanner.failure(at: tag.position, "the key \"\(key)\" comes twice")
            }
        }
        throw scanner.failure("<key> or </dict> is expected, and there is \(scanner.found)")
    }

    private mutating func scalar(_ tag: Tag) throws(FileError) -> Value {
        let text = try content(tag)
        if tag.name == "string" { return .string(Text(text)) }
        // No number or date is longer. A longer text may take long to look at.
        let bare = text.utf8.count > Self.longestScalar ? "" : text.filter { !$0.isWhitespace }
        switch tag.name {
        case "integer": if let number = Self.integer(bare) { return .integer(number) }
        case "real": if let number = Self.real(bare) { return .real(number) }
        case "data": if let bytes = Base64.decode(text) { return .data(bytes) }
        case "date":
            if let seconds = DateText.seconds(bare) ?? Self.unwritable(bare) { return .date(seconds) }
        default:
            throw scanner.failure(at: tag.position, "<\(tag.name)> is not an element of a property list")
        }
        throw scanner.failure(at: tag.position, "what <\(tag.name)> holds is not one of that type")
    }

    /// Returns the date of a number of seconds, which ``XMLWriter`` writes for dates that have no other text. Any other
    /// number, such as a year, is a mistake.
    private static func unwritable(_ text: String) -> Double? {
        guard let seconds = Double(text), seconds.isFinite, DateText.text(seconds) == nil else { return nil }
        return seconds
    }

    private static func integer(_ text: String) -> Int64? {
        let isNegative = text.hasPrefix("-")
        let magnitude = text.drop { $0 == "-" || $0 == "+" }
        guard magnitude.hasPrefix("0x") || magnitude.hasPrefix("0X") else { return Int64(text) }
        return Int64((isNegative ? "-" : "") + magnitude.dropFirst(2), radix: 16)
    }

    private static func real(_ text: String) -> Double? {
        switch text.lowercased() {
        case "nan": .nan
        case "inf", "+inf", "infinity", "+infinity": .infinity
        case "-inf", "-infinity": -.infinity
        // Sixteen digits are read as a number, and as the bits of a NaN only if no finite number results.
        default: Double(text).flatMap { $0.isFinite ? $0 : nil } ?? RealText.real(text)
        }
    }

    // MARK: Text

    private mutating func content(_ tag: Tag) throws(FileError) -> String {
        if tag.kind == .empty { return "" }
        var text = ""
        while !scanner.isAtEnd {
            text += scanner.take { $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: "&") && $0 != 0x0D }
            let start = scanner.position
            if scanner.take("\r\n") || scanner.take("\r") {
                text += "\n"
            } else if scanner.take("&") {
                text.unicodeScalars.append(try entity(at: start))
            } else if scanner.take("<![CDATA[") {
                let from = scanner.position
                guard scanner.skip(past: "]]>") else { throw scanner.failure(at: start, "<![CDATA[ has no end") }
                text += String(decoding: scanner.bytes[from..<scanner.position - 3], as: UTF8.self)
            } else if scanner.take("<!--") {
                guard scanner.skip(past: "-->") else { throw scanner.failure(at: start, "the comment has no end") }
            } else if scanner.isNext("<") {
                try end(tag.name)
                return text
            }
        }
        throw scanner.failure(at: tag.position, "<\(tag.name)> has no end")
    }

    private static let entities: [String: Unicode.Scalar] = [
        "lt": "<", "gt": ">", "amp": "&", "apos": "'", "quot": "\"",
    ]

    private mutating func entity(at start: Int) throws(FileError) -> Unicode.Scalar {
        let name = scanner.take { $0 > 0x20 && !";<&".utf8.contains($0) }
        guard name.utf8.count <= Self.longestName, scanner.take(";") else {
            throw scanner.failure(at: start, "& is written as &amp;")
        }
        if let scalar = Self.entities[name] { return scalar }
        let isHexadecimal = name.hasPrefix("#x")
        let digits = name.dropFirst(isHexadecimal ? 2 : 1)
        guard name.hasPrefix("#"), let number = UInt32(digits, radix: isHexadecimal ? 16 : 10), number != 0,
            let scalar = Unicode.Scalar(number)
        else { throw scanner.failure(at: start, "&\(name); is not a character") }
        return scalar
    }
}
