// SPDX-License-Identifier: Apache-2.0

import PropertyList

/// A row of the table "Vectors" in docs/remote-format.md.
struct Vector: Sendable, CustomStringConvertible {
    /// How the document writes the value.
    let description: String
    let value: Value
    let hex: String

    init(_ description: String, _ value: Value, _ hex: String) {
        self.description = description
        self.value = value
        self.hex = hex
    }

    var bytes: [UInt8] { PropertyListTests.bytes(hex) }

    static let all: [Vector] = [
        Vector("false", .boolean(false), "01"),
        Vector("true", .boolean(true), "02"),
        Vector("integer 0", .integer(0), "03 00"),
        Vector("integer -1", .integer(-1), "03 01"),
        Vector("integer 1", .integer(1), "03 02"),
        Vector("integer 63", .integer(63), "03 7e"),
        Vector("integer -64", .integer(-64), "03 7f"),
        Vector("integer 64", .integer(64), "03 80 01"),
        Vector("integer 1000000", .integer(1_000_000), "03 80 89 7a"),
        Vector("integer 9223372036854775807", .integer(.max), "03 fe ff ff ff ff ff ff ff ff 01"),
        Vector("integer -9223372036854775808", .integer(.min), "03 ff ff ff ff ff ff ff ff ff 01"),
        Vector("real 0.0", .real(0), "04 00 00 00 00 00 00 00 00"),
        Vector("real -0.0", .real(-0.0), "04 80 00 00 00 00 00 00 00"),
        Vector("real 1.0", .real(1), "04 3f f0 00 00 00 00 00 00"),
        Vector("real 0.1", .real(0.1), "04 3f b9 99 99 99 99 99 9a"),
        Vector("real -infinity", .real(-.infinity), "04 ff f0 00 00 00 00 00 00"),
        Vector("real NaN", .real(.nan), "04 7f f8 00 00 00 00 00 00"),
        Vector("real NaN, payload 1", .real(Double(bitPattern: 0x7FF8_0000_0000_0001)), "04 7f f8 00 00 00 00 00 01"),
        Vector("real NaN, signalling", .real(Double(bitPattern: 0x7FF0_0000_0000_0001)), "04 7f f0 00 00 00 00 00 01"),
        Vector("date 0.0", .date(0), "05 00 00 00 00 00 00 00 00"),
        Vector("date -978307200.0 (1970-01-01)", .date(-978_307_200), "05 c1 cd 27 e4 40 00 00 00"),
        Vector("string \"\"", .string(""), "06 00"),
        Vector("string \"hello\"", .string("hello"), "06 05 68 65 6c 6c 6f"),
        Vector("string U+00E9", .string("\u{E9}"), "06 02 c3 a9"),
        Vector("string U+0065 U+0301", .string("e\u{301}"), "06 03 65 cc 81"),
        Vector("string U+1F600", .string("\u{1F600}"), "06 04 f0 9f 98 80"),
        Vector("data of no bytes", .data([]), "07 00"),
        Vector("data 00 ff", .data([0x00, 0xFF]), "07 02 00 ff"),
        Vector("[]", .array([]), "08 00"),
        Vector("[[]]", .array([.array([])]), "08 01 08 00"),
        Vector(
            "[true, 1, 1.0]",
            .array([.boolean(true), .integer(1), .real(1)]),
            "08 03 02 03 02 04 3f f0 00 00 00 00 00 00"
        ),
        Vector("{}", .dictionary([:]), "09 00"),
        Vector("{\"\": false}", .dictionary(["": .boolean(false)]), "09 01 00 01"),
        Vector(
            "{\"b\": 1, \"aa\": 2, \"a\": 3}",
            .dictionary(["b": .integer(1), "aa": .integer(2), "a": .integer(3)]),
            "09 03 01 61 03 06 02 61 61 03 04 01 62 03 02"
        ),
        Vector(
            "{U+00E9: true, U+0065 U+0301: false}",
            .dictionary(["\u{E9}": .boolean(true), "e\u{301}": .boolean(false)]),
            "09 02 03 65 cc 81 01 02 c3 a9 02"
        ),
        Vector(
            "{U+FFFD: 1, U+1F600: 2}",
            .dictionary(["\u{FFFD}": .integer(1), "\u{1F600}": .integer(2)]),
            "09 02 03 ef bf bd 03 02 04 f0 9f 98 80 03 04"
        ),
        Vector(
            "{\"windows\": [{\"x\": -5, \"title\": \"\"}]}",
            .dictionary(["windows": .array([.dictionary(["x": .integer(-5), "title": .string("")])])]),
            "09 01 07 77 69 6e 64 6f 77 73 08 01 09 02 05 74 69 74 6c 65 06 00 01 78 03 09"
        ),
    ]
}

/// A row of the table "Refused" in docs/remote-format.md.
struct Refusal: Sendable, CustomStringConvertible {
    let hex: String
    let offset: Int
    let reason: CanonicalDecodingError.Reason

    init(_ hex: String, _ offset: Int, _ reason: CanonicalDecodingError.Reason) {
        self.hex = hex
        self.offset = offset
        self.reason = reason
    }

    var bytes: [UInt8] { PropertyListTests.bytes(hex) }
    var description: String { "\(hex): \(reason)" }

    static let all: [Refusal] = [
        Refusal("", 0, .truncated),
        Refusal("00", 0, .unknownTag(0)),
        Refusal("0a", 0, .unknownTag(10)),
        Refusal("ff", 0, .unknownTag(255)),
        Refusal("03", 1, .truncated),
        Refusal("03 80", 1, .truncated),
        Refusal("03 80 00", 1, .varintNotShortest),
        Refusal("03 ff ff ff ff ff ff ff ff ff 02", 1, .varintTooLarge),
        Refusal("03 80 80 80 80 80 80 80 80 80 80 01", 1, .varintTooLarge),
        Refusal("03 80 80 80 80 80 80 80 80 80 00", 1, .varintNotShortest),
        Refusal("04 3f f0 00 00 00 00 00", 1, .truncated),
        Refusal("05 7f f0 00 00 00 00 00 00", 0, .dateNotFinite),
        Refusal("05 7f f8 00 00 00 00 00 00", 0, .dateNotFinite),
        Refusal("06 02 61", 1, .lengthBeyondEnd(2)),
        Refusal("06 81 00 61", 1, .varintNotShortest),
        Refusal("06 ff ff ff ff ff ff ff ff ff 01", 1, .lengthBeyondEnd(.max)),
        Refusal("06 02 61 00", 3, .containsNUL),
        Refusal("06 04 61 ef bf bf", 3, .containsNoncharacter),
        Refusal("06 05 61 f4 8f bf be", 3, .containsNoncharacter),
        Refusal("06 02 61 ff", 3, .invalidUTF8),
        Refusal("06 02 c0 80", 2, .invalidUTF8),
        Refusal("06 03 ed a0 80", 2, .invalidUTF8),
        Refusal("06 04 f4 90 80 80", 2, .invalidUTF8),
        Refusal("07 01", 1, .lengthBeyondEnd(1)),
        Refusal("08 01", 1, .countBeyondEnd(1)),
        Refusal("08 ff ff ff ff 0f 01", 1, .countBeyondEnd(4_294_967_295)),
        Refusal("08 02 06 00", 4, .truncated),
        Refusal("08 01 0a", 2, .unknownTag(10)),
        Refusal("09 01 00", 1, .countBeyondEnd(1)),
        Refusal("09 01 01 00 01", 3, .containsNUL),
        Refusal("09 01 01 80 01", 3, .invalidUTF8),
        Refusal("09 02 01 62 01 01 61 01", 6, .keysOutOfOrder),
        Refusal("09 02 02 61 61 01 01 61 01", 7, .keysOutOfOrder),
        Refusal("09 02 01 61 01 01 61 02", 6, .duplicateKey),
        Refusal("09 02 00 01 00 01", 5, .duplicateKey),
        Refusal("01 01", 1, .trailingBytes(1)),
        Refusal("08 00 00 00", 2, .trailingBytes(2)),
        Refusal(String(repeating: "08 01 ", count: 16) + "08 00", 32, .tooDeep(limit: 16)),
    ]
}

/// Parses bytes such as "01 ff".
func bytes(_ hex: String) -> [UInt8] {
    hex.split(separator: " ").compactMap { UInt8($0, radix: 16) }
}

/// Formats bytes, as in "01 ff".
func hex(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: " ")
}
