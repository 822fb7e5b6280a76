// SPDX-License-Identifier: Apache-2.0

import DefaultsDomains
import Foundation
import PropertyList
import SeededRandom
import Testing
import UbiquitousStore
import UbiquitousStoreTesting

/// Every getter on random values of every type.
@Suite(.timeLimit(.minutes(30)))
struct RandomValueTests {
    private static let reals: [Double] = [
        0, -0.0, 0.1, 1, -1.5, 12.34, 9.3e18, -9.3e18, 1e300, Double.leastNonzeroMagnitude, .infinity, -.infinity, .nan,
    ]
    private static let integers: [Int64?] = [0, 1, -1, .max, .min, nil, nil]
    private static let strings: [Text] = [
        "", "0", "1", "YES", "no", " 7", "-12.5e3x", "~", "~/a b", "/etc/../x", "https://example.org", "\u{301}e", "𝄞",
        "99999999999999999999", "NaN", "{a=1;}",
    ]

    private static func draw(_ random: inout SplitMix, depth: Int = 0) -> Value {
        switch Int.random(in: 0..<(depth < 3 ? 8 : 6), using: &random) {
        case 0: .boolean(.random(using: &random))
        case 1: .integer((integers.randomElement(using: &random) ?? nil) ?? .random(in: .min ... .max, using: &random))
        case 2: .real(reals.randomElement(using: &random) ?? 0)
        case 3: .string(strings.randomElement(using: &random) ?? "")
        case 4: .data((0..<Int.random(in: 0..<40, using: &random)).map { _ in .random(in: 0...255, using: &random) })
        case 5: .date(.random(in: -1e11...1e11, using: &random))
        case 6: .array((0..<Int.random(in: 0..<4, using: &random)).map { _ in draw(&random, depth: depth + 1) })
        default:
            .dictionary(
                (0..<Int.random(in: 0..<4, using: &random)).reduce(into: [:]) { fields, index in
                    fields[Text("k\(index)")] = draw(&random, depth: depth + 1)
                })
        }
    }

    /// Checks the getters of a key that has this value.
    private func check(_ defaults: DefaultsDomains.UserDefaults, _ key: String, _ value: Value) throws {
        let object = try #require(defaults.object(forKey: key))
        #expect(try Value(object: object) == value)
        #expect(defaults.float(forKey: key).bitPattern == Float(defaults.double(forKey: key)).bitPattern)
        #expect((defaults.array(forKey: key) != nil) == value.isArray)
        #expect((defaults.dictionary(forKey: key) != nil) == value.isDictionary)
        #expect((defaults.data(forKey: key) != nil) == value.isData)
        #expect(defaults.stringArray(forKey: key) == nil || value.isArray)
        #expect(defaults.url(forKey: key) == nil || value.isString || value.isData)
        let (integer, double) = (defaults.integer(forKey: key), defaults.double(forKey: key))
        switch value {
        case .boolean(let isTrue):
            #expect(defaults.bool(forKey: key) == isTrue && integer == (isTrue ? 1 : 0) && double == (isTrue ? 1 : 0))
        case .integer(let number):
            #expect(defaults.bool(forKey: key) == (number != 0) && Int64(integer) == number)
            #expect(double == Double(number) && defaults.string(forKey: key) == String(number))
        case .real(let number):
            #expect(defaults.bool(forKey: key) == (number != 0) && double.bitPattern == number.bitPattern)
            let text = try #require(defaults.string(forKey: key).flatMap(Double.init))
            #expect(text == number || number.isNaN)
        case .string(let text):
            #expect(defaults.string(forKey: key).map { Text($0) } == text)
        case .data, .date, .array, .dictionary:
            #expect(defaults.string(forKey: key) == nil && integer == 0 && double == 0)
            #expect(!defaults.bool(forKey: key))
        }
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `every getter answers for every value as its page says, and the service has the same values`(seed: UInt64)
        async throws
    {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            var random = SplitMix(seed: seed)
            let defaults = desk.settings()
            var last: [Text: Value] = [:]
            for index in 0..<400 {
                let (key, value) = ("key \(index % 97)", Self.draw(&random))
                defaults.set(value.object, forKey: key)
                last[Text(key)] = value
                try check(defaults, key, value)
            }
            try await desk.settle(defaults)
            #expect(try await desk.other().snapshot().values == last)
        }
    }
}

extension Value {
    fileprivate var isArray: Bool { if case .array = self { true } else { false } }
    fileprivate var isDictionary: Bool { if case .dictionary = self { true } else { false } }
    fileprivate var isData: Bool { if case .data = self { true } else { false } }
    fileprivate var isString: Bool { if case .string = self { true } else { false } }
    /// The object as an app sets it.
    fileprivate var object: Any? { ["value": self].objects["value"] }
}
