// SPDX-License-Identifier: Apache-2.0

// Readable dates without rounding. A date is a binary64 number of seconds. The text's fraction has the digits of the
// shortest decimal that reads back as the same number, so neither direction rounds.

/// Dates in the form of RFC 3339: `2026-11-21T09:30:00.25Z`.
package enum DateText {
    /// Days from 1970-01-01 to 2001-01-01.
    private static let epoch = 11_323
    /// Seconds from 2001 to the beginnings of the years 1 and 10000.
    private static let range = -63_113_904_000..<252_423_993_600

    /// Returns a date's text; `nil` if none is exact: before year 1, after 9999, -0.0, and within microseconds of 2001.
    ///
    /// - Parameter seconds: since 2001-01-01T00:00:00Z.
    package static func text(_ seconds: Double) -> String? {
        let decimal = seconds.description
        guard seconds.isFinite, !decimal.contains("e"), decimal != "-0.0" else { return nil }
        let parts = decimal.split(separator: ".")
        guard let magnitude = Int(parts[0].drop { $0 == "-" }), parts.count == 2 else { return nil }
        var (whole, fraction) = (magnitude, parts[1] == "0" ? "" : String(parts[1]))
        if seconds < 0 {
            whole = fraction.isEmpty ? -magnitude : -magnitude - 1
            fraction = complement(fraction)
        }
        guard range.contains(whole) else { return nil }
        return calendar(whole) + (fraction.isEmpty ? "" : ".\(fraction)") + "Z"
    }

    /// Returns the date of a text, in seconds since 2001-01-01T00:00:00Z; `nil` if it is not a date.
    ///
    /// A date alone is midnight UTC. A time ends with `Z` or with an offset such as `+01:00`.
    package static func seconds(_ text: String) -> Double? {
        var scanner = Digits(text)
        guard let year = scanner.number(4), scanner.take("-"), let month = scanner.number(2), scanner.take("-"),
            let day = scanner.number(2), (1...9999).contains(year), (1...12).contains(month),
            (1...length(ofMonth: month, year: year)).contains(day)
        else { return nil }
        let midnight = days(year, month, day) * 86_400
        if scanner.isAtEnd { return Double(midnight) }
        guard scanner.take("T") || scanner.take("t") || scanner.take(" "), let time = scanner.time() else { return nil }
        let fraction = scanner.take(".") ? scanner.digits() : ""
        guard fraction != nil, let fraction, let offset = scanner.offset(), scanner.isAtEnd else { return nil }
        return number(midnight + time - offset, fraction)
    }

    // MARK: Numbers

    private static func number(_ whole: Int, _ fraction: String) -> Double? {
        guard whole < 0, fraction.contains(where: { $0 != "0" }) else { return Double("\(whole).\(fraction)0") }
        return Double("-\(-whole - 1).\(complement(fraction))")
    }

    /// Returns the digits of 1 minus the fraction.
    private static func complement(_ fraction: String) -> String {
        var digits = Array(fraction.utf8)
        guard let last = digits.lastIndex(where: { $0 != UInt8(ascii: "0") }) else { return fraction }
        for index in digits[..<last].indices { digits[index] = 2 * UInt8(ascii: "0") + 9 - digits[index] }
        digits[last] = 2 * UInt8(ascii: "0") + 10 - digits[last]
        return String(decoding: digits, as: UTF8.self)
    }

    // MARK: Calendar

    /// Returns the days since 2001-01-01 in the proleptic Gregorian calendar, computed with years that begin in March.
    private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let (year, month) = month > 2 ? (year, month - 3) : (year - 1, month + 9)
        return 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468 - epoch
    }

    private static func calendar(_ seconds: Int) -> String {
        let day = Int((Double(seconds) / 86_400).rounded(.down))
        let time = seconds - day * 86_400
        var (year, month) = (2001 + Int((Double(day) / 365.2425).rounded(.down)) + 1, 12)
        while days(year, 1, 1) > day { year -= 1 }
        while days(year, month, 1) > day { month -= 1 }
        let date = "\(padded(year, 4))-\(padded(month, 2))-\(padded(day - days(year, month, 1) + 1, 2))"
        return "\(date)T\(padded(time / 3600, 2)):\(padded(time / 60 % 60, 2)):\(padded(time % 60, 2))"
    }

    private static func length(ofMonth month: Int, year: Int) -> Int {
        let (next, nextYear) = month == 12 ? (1, year + 1) : (month + 1, year)
        return days(nextYear, next, 1) - days(year, month, 1)
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let digits = "\(number)"
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

/// The rest of a date's text.
private struct Digits {
    private var rest: Substring.UTF8View

    init(_ text: String) { rest = text[...].utf8 }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest = rest.dropFirst()
        return true
    }

    mutating func number(_ count: Int) -> Int? {
        let digits = rest.prefix(count)
        guard digits.count == count, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        rest = rest.dropFirst(count)
        return Int(String(decoding: digits, as: UTF8.self))
    }

    mutating func digits() -> String? {
        let digits = rest.prefix { (0x30...0x39).contains($0) }
        rest = rest.dropFirst(digits.count)
        return digits.isEmpty ? nil : String(decoding: digits, as: UTF8.self)
    }

    /// Reads a time of day, and returns the seconds since midnight.
    mutating func time() -> Int? {
        guard let hour = number(2), take(":"), let minute = number(2), hour < 24, minute < 60 else { return nil }
        guard take(":") else { return hour * 3600 + minute * 60 }
        guard let second = number(2), second < 60 else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    /// Reads a time zone's offset, and returns the seconds east of UTC.
    mutating func offset() -> Int? {
        if take("Z") || take("z") { return 0 }
        let sign = take("+") ? 1 : take("-") ? -1 : 0
        guard sign != 0, let hours = number(2), take(":"), let minutes = number(2), hours < 24, minutes < 60 else {
            return nil
        }
        return sign * (hours * 3600 + minutes * 60)
    }
}
