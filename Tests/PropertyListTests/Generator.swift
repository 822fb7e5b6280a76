// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import SeededRandom

/// The seed of this run's generated input: from `PROPERTY_LIST_SEED`, or random. It is printed.
let seed: UInt64 = {
    let given = ProcessInfo.processInfo.environment["PROPERTY_LIST_SEED"].flatMap { UInt64($0) }
    let seed = given ?? .random(in: 0...UInt64.max)
    print("PROPERTY_LIST_SEED=\(seed)")
    return seed
}()

/// Generates this run's input.
struct Generator: RandomNumberGenerator {
    private var generator: SplitMix

    /// Makes a generator for a stream of its own, so that tests don't depend on their order.
    init(stream: UInt64) {
        generator = SplitMix(seed: seed &+ stream &* 0xD1B5_4A32_D192_ED03)
    }

    mutating func next() -> UInt64 { generator.next() }

    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }

    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) } }

    /// Returns a valid value, mostly an edge case of encodings. The choices are few, so two values are often equal.
    mutating func value(depth: Int = 4) -> Value {
        switch below(depth > 0 ? 10 : 7) {
        case 0: return .boolean(.random(using: &self))
        case 1: return .integer(integer())
        case 2: return .real(real())
        case 3: return .date(date())
        case 4, 5: return .string(Text(string()))
        case 6: return .data(bytes(below(4) == 0 ? below(300) : below(3)))
        case 7, 8: return .array((0..<below(5)).map { _ in value(depth: depth - 1) })
        default:
            let entries = (0..<below(6)).map { _ in (Text(string()), value(depth: depth - 1)) }
            return .dictionary(Dictionary(entries) { first, _ in first })
        }
    }

    private mutating func integer() -> Int64 {
        let magnitude = Int64(truncatingIfNeeded: next() >> UInt64(below(64)))
        return [0, 1, -1, .min, .max, magnitude, ~magnitude][below(7)]
    }

    private mutating func real() -> Double {
        [0, -0.0, 1, .infinity, .nan, Double(bitPattern: 0x7FF8_0000_0000_0001), Double(bitPattern: next())][below(7)]
    }

    private mutating func date() -> Double {
        let date = real()
        return date.isFinite ? date : 0
    }

    mutating func string() -> String {
        let scalars: [Unicode.Scalar] = ["a", "b", "e", "\u{301}", "é", "\u{FFFD}", "\u{1F600}", "\u{1}", "\u{D7FF}"]
        let length = below(20) == 0 ? below(200) : below(4)
        var string = ""
        for _ in 0..<length { string.unicodeScalars.append(scalars[below(scalars.count)]) }
        return string
    }
}
