// SPDX-License-Identifier: Apache-2.0

/// Reals that aren't finite, as words.
package enum RealText {
    /// Returns `nan`, `inf`, `-inf`, or the 16 hexadecimal digits of a nonstandard NaN.
    package static func text(_ real: Double) -> String {
        if real.isInfinite { return real < 0 ? "-inf" : "inf" }
        if real.bitPattern == Double.nan.bitPattern { return "nan" }
        let digits = String(real.bitPattern, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// Returns the real for a text of ``text(_:)``; `nil` for any other text.
    package static func real(_ text: String) -> Double? {
        switch text {
        case "nan": return .nan
        case "inf": return .infinity
        case "-inf": return -.infinity
        default:
            guard text.utf8.count == 16, text.allSatisfy(\.isHexDigit), let bits = UInt64(text, radix: 16) else {
                return nil
            }
            return Double(bitPattern: bits)
        }
    }
}
