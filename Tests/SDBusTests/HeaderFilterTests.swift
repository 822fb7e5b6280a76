// SPDX-License-Identifier: Apache-2.0

import SeededRandom
import Testing

@testable import SDBus

/// What a bus passes on, of which only one reading may be left.
struct HeaderFilterTests {
    private var dice = SplitMix(seed: .random(in: 1 ... .max))

    /// A message's fields: code, type and value.
    private typealias Field = (code: UInt8, type: String, value: [UInt8])

    private static func text(_ text: String) -> [UInt8] {
        number(UInt32(text.utf8.count)) + Array(text.utf8) + [0]
    }

    private static func number(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }

    private static let known: [Field] = [
        (1, "o", text("/org/example/Path")), (2, "s", text("org.example.Interface")), (3, "s", text("Member")),
        (5, "u", number(7)), (6, "s", text(":1.1")), (7, "s", text(":1.2")), (8, "g", [2] + Array("as".utf8) + [0]),
        (9, "u", number(0)),
    ]

    private static func message(_ fields: [Field], body: Int, padding: Int = 0) -> [UInt8] {
        var array: [UInt8] = []
        func align(_ size: Int) { while array.count % size != 0 { array.append(0) } }
        for field in fields {
            align(8)
            array += [field.code, UInt8(field.type.utf8.count)] + Array(field.type.utf8) + [0]
            if field.type != "g" { align(4) }
            array += field.value
        }
        array += [UInt8](repeating: 0, count: padding)
        let size = array.count
        align(8)
        let head: [UInt8] = [UInt8(ascii: "l"), 1, 0, 1] + number(UInt32(body)) + number(1) + number(UInt32(size))
        return head + array + [UInt8](repeating: 9, count: body)
    }

    /// Passes a stream in random pieces.
    private mutating func passed(_ stream: [UInt8]) throws -> [UInt8] {
        var (filter, passed, rest) = (HeaderFilter(), [UInt8](), stream[...])
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 1...40, using: &dice))
            rest = rest.dropFirst(piece.count)
            let part = filter.pass(piece)
            passed += try #require(part)
        }
        return passed
    }

    private static let greeting = Array("DATA\r\nOK 0123456789abcdef\r\n".utf8)

    @Test mutating func `what the specification knows is passed on as it is, in whatever pieces it arrives`() throws {
        for _ in 0..<200 {
            let messages = (0..<5).map { _ in
                let fields = Self.known.shuffled(using: &dice).prefix(Int.random(in: 0...8, using: &dice))
                return Self.message(Array(fields), body: Int.random(in: 0...100, using: &dice))
            }
            let stream = Self.greeting + messages.joined()
            let passed = try passed(stream)
            #expect(passed == stream)
        }
    }

    @Test mutating func `a message with anything else is dropped, and those around it are passed on`() throws {
        let good = Self.message(Self.known, body: 10)
        let array = Self.number(24) + [UInt8](repeating: 0, count: 24)
        let bad: [[UInt8]] = [
            Self.message(Self.known + [(200, "ay", array)], body: 5),
            Self.message([(10, "s", Self.text("x"))] + Self.known, body: 0),
            Self.message([(0, "s", Self.text("x"))] + Self.known, body: 0),
            // Twice, or of another type.
            Self.message(Self.known + [(7, "s", Self.text(":1.3"))], body: 3),
            Self.message([(7, "u", Self.number(3))], body: 3),
            Self.message([(1, "v", [1] + Array("o".utf8) + [0] + Self.text("/"))], body: 3),
            // A length that leads beyond the fields, or not to their end.
            Self.message([(1, "o", Self.number(1000) + [0])], body: 0),
            Self.message(Self.known, body: 0, padding: 3),
            // More than any of them needs.
            Self.message([(1, "o", Self.text("/" + String(repeating: "a", count: 200_000)))], body: 70_000),
        ]
        for message in bad {
            let stream = Self.greeting + good + message + good
            let passed = try passed(stream)
            #expect(passed == Self.greeting + good + good)
        }
    }

    @Test func `what isn't D-Bus ends the connection`() {
        var filter = HeaderFilter()
        var huge = Self.message([], body: 0)
        huge[4..<8] = [0xFF, 0xFF, 0xFF, 0x7F]
        let oversized = filter.pass((Self.greeting + huge)[...])
        #expect(oversized == nil)
        filter = HeaderFilter()
        let endless = filter.pass([UInt8](repeating: 65, count: 20_000)[...])
        #expect(endless == nil)
    }
}
