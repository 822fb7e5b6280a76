// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import PropertyListFiles
import Testing

@Suite struct RoundTripTests {
    @Test(arguments: FileFormat.allCases)
    func `what a format writes it reads as the same value`(format: FileFormat) throws {
        for value in Samples.all {
            let bytes = try format.write(value)
            #expect(FileFormat(of: bytes) == format)
            #expect(try format.read(bytes) == value, "\(String(decoding: bytes, as: UTF8.self))")
        }
        let store = Value.dictionary(Samples.store)
        #expect(try format.read(format.write(store)) == store)
    }

    /// It writes each of them in sixteen bytes.
    @Test func `integers without a sign of Swift's encoder are read if they have 63 bits`() throws {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        let numbers: [UInt64] = [0, 5, 1 << 63 - 1]
        let bytes = Array(try encoder.encode(numbers))
        #expect(try FileFormat.binary.read(bytes) == .array([.integer(0), .integer(5), .integer(.max)]))
        let larger = Array(try encoder.encode([1 << 63 as UInt64]))
        #expect { try FileFormat.binary.read(larger) } throws: { "\($0)".contains("an integer is too large") }
    }

    @Test(arguments: [FileFormat.binary, .json])
    func `control characters are carried by binary and JSON`(format: FileFormat) throws {
        for value in Samples.beyondXML { #expect(try format.read(format.write(value)) == value) }
    }

    @Test(arguments: Samples.beyondXML)
    func `control characters are refused by XML, with a word on what to do`(value: Value) {
        #expect { try FileFormat.xml.write(value) } throws: {
            "\($0)".contains("control character U+00") && "\($0)".contains("use binary or JSON")
        }
    }

    @Test func `a large string, data and array survive`() throws {
        let value = Value.array([
            .string(Text(String(repeating: "ä", count: 20_000))), .data([UInt8](repeating: 7, count: 20_000)),
            .array((0..<70_000).map { .integer($0) }),
        ])
        for format in FileFormat.allCases { #expect(try format.read(format.write(value)) == value) }
    }

    @Test func `random reals and dates survive`() throws {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            let real = Double(bitPattern: generator.next())
            let seconds = Double.random(in: -70e9...260e9, using: &generator)
            let near = Double.random(in: -10...10, using: &generator)
            let value = Value.array([.real(real), .date(seconds), .date(near), .date(real.isFinite ? real : 0)])
            for format in FileFormat.allCases { try #require(try format.read(format.write(value)) == value) }
        }
    }
}

/// Foundation reads and writes the same formats. Values that both can write have to mean the same.
@Suite struct FoundationTests {
    private static var plain: [String: Any] {
        [
            "text": "é <&>", "number": 12, "negative": -7, "real": 1.5, "yes": true, "data": Data([0, 1, 255]),
            "date": Date(timeIntervalSinceReferenceDate: 812_345_678), "list": [1, "2", [String]()] as [Any],
            "nested": ["a": ["b": [:] as [String: Any]]],
        ]
    }
    private static let value: Value = .dictionary([
        "text": .string("é <&>"), "number": .integer(12), "negative": .integer(-7), "real": .real(1.5),
        "yes": .boolean(true), "data": .data([0, 1, 255]), "date": .date(812_345_678),
        "list": .array([.integer(1), .string("2"), .array([])]),
        "nested": .dictionary(["a": .dictionary(["b": .dictionary([:])])]),
    ])

    @Test(arguments: [FileFormat.xml, .binary])
    func `what Foundation writes is read`(format: FileFormat) throws {
        let data = try PropertyListSerialization.data(
            fromPropertyList: Self.plain, format: format == .xml ? .xml : .binary, options: 0)
        #expect(try format.read(Array(data)) == Self.value)
    }

    @Test(arguments: [FileFormat.xml, .binary])
    func `Foundation reads what is written`(format: FileFormat) throws {
        let object = try PropertyListSerialization.propertyList(
            from: Data(try format.write(Self.value)), format: nil)
        #expect((object as? NSDictionary) == Self.plain as NSDictionary)
    }

    @Test func `dates are those of Foundation's calendar`() throws {
        let formatter = ISO8601DateFormatter()
        for seconds in stride(from: -60_000_000_000.0, to: 250_000_000_000, by: 86_400 * 370 + 3601) {
            let text = formatter.string(from: Date(timeIntervalSinceReferenceDate: seconds))
            // Before October 1582, Foundation uses the Julian calendar.
            if seconds > -13_197_000_000 { #expect(DateText.text(seconds) == text) }
            try #require(DateText.text(seconds).flatMap(DateText.seconds) == seconds)
        }
    }
}
