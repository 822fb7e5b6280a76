// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList

/// Values of every type, with the edge cases of the formats.
enum Samples {
    static let scalars: [Value] =
        [.boolean(true), .boolean(false)]
        + [0, 1, -1, 255, 256, 65_535, 65_536, 1 << 32, .max, .min].map(Value.integer)
        + [0, -0.0, 1, -1.5, 0.1, .leastNonzeroMagnitude, 1e300, 1e16, 123_456_789.25, .infinity, -.infinity, .nan].map(
            Value.real)
        + [0x7FF8_0000_0000_0001, 0xFFF8_0000_0000_0000].map { .real(Double(bitPattern: $0)) }
        + [0, -0.0, 0.5, -0.5, 1, -1, 812_345_678, 812_345_678.123456, -978_307_200, 1e-9, -63_113_904_000, 1e12]
        .map(Value.date)
        + ["", "dark", "é", "e\u{301}", "\u{1F600}", " ", "a\nb\r\nc\r", "<&>\"']]>", "\\u0041", "\t"].map {
            .string($0)
        }
        + [[], [0], [0, 1], [0, 1, 2], Array(0...255)].map(Value.data)

    static let containers: [Value] = [
        .array([]), .dictionary([:]), .array([.array([]), .dictionary([:])]), .array(scalars),
        .dictionary(["é": .integer(1), "e\u{301}": .integer(2), "": .boolean(true)]),
        .dictionary(["$date": .string("x")]), .dictionary(["$dictionary": .dictionary(["$data": .integer(1)])]),
        .dictionary(["$date": .string("x"), "other": .integer(1)]), .dictionary(["$schema": .string("x")]),
    ]

    /// Values with control characters, which XML can't hold.
    static let beyondXML: [Value] = [.string("\u{1}"), .string("\u{1B}[31m"), .dictionary(["\u{2}": .integer(1)])]

    static let all = scalars + containers

    /// A dictionary of all these values, such as a store's.
    static let store: [Text: Value] = Dictionary(
        uniqueKeysWithValues: all.enumerated().map { (Text("key\($0)"), $1) })
}
