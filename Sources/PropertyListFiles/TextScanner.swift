// SPDX-License-Identifier: Apache-2.0

/// The bytes of a text file, and the current position.
struct TextScanner {
    let bytes: [UInt8]
    private(set) var position = 0

    /// - Throws: ``FileError`` at the first byte that isn't UTF-8.
    init(_ bytes: [UInt8]) throws(FileError) {
        self.bytes = bytes
        if let wrong = Self.firstInvalid(bytes) {
            let isWide = bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF])
            throw failure(at: wrong, isWide ? "this is UTF-16; save it as UTF-8" : "this is not UTF-8")
        }
        if bytes.starts(with: "\u{FEFF}".utf8) { position = 3 }
    }

    var next: UInt8? { position < bytes.count ? bytes[position] : nil }
    var isAtEnd: Bool { position >= bytes.count }

    /// Whether the next byte is this character.
    func isNext(_ character: Unicode.Scalar) -> Bool { next == UInt8(ascii: character) }

    mutating func advance(_ count: Int = 1) { position += count }

    /// Reads `text` if it is next.
    mutating func take(_ text: StaticString) -> Bool {
        text.withUTF8Buffer { text in
            guard bytes[position...].starts(with: text) else { return false }
            position += text.count
            return true
        }
    }

    /// Reads bytes as long as `isWanted` returns true.
    mutating func take(while isWanted: (UInt8) -> Bool) -> String {
        let start = position
        while let byte = next, isWanted(byte) { position += 1 }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    /// Skips past `end`; false if it doesn't occur.
    mutating func skip(past end: StaticString) -> Bool {
        while !isAtEnd {
            if take(end) { return true }
            position += 1
        }
        return false
    }

    // MARK: Places

    /// Makes an error at the current position, or at an earlier one.
    func failure(at offset: Int? = nil, _ reason: String) -> FileError {
        let before = bytes[..<min(offset ?? position, bytes.count)]
        let line = before.count { $0 == 0x0A }
        let start = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
        let column = before[start...].count { $0 & 0xC0 != 0x80 }
        return FileError(place: .text(line: line + 1, column: column + 1), reason: reason)
    }

    /// The next input, in words.
    var found: String {
        guard let byte = next else { return "the end" }
        if byte < 0x20 || byte == 0x7F { return "a control character" }
        let first = String(decoding: bytes[position..<min(position + 4, bytes.count)], as: UTF8.self).unicodeScalars
            .first
        return first.map { "\"\($0)\"" } ?? "an unknown character"
    }

    private static func firstInvalid(_ bytes: [UInt8]) -> Int? {
        if String(validating: bytes, as: UTF8.self) != nil { return nil }
        var (parser, iterator, offset) = (Unicode.UTF8.ForwardParser(), bytes.makeIterator(), 0)
        while true {
            switch parser.parseScalar(from: &iterator) {
            case .valid(let scalar): offset += scalar.count
            case .error: return offset
            case .emptyInput: return nil
            }
        }
    }
}
