// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import PropertyListFiles

/// Dates as users type them.
enum DateWord {
    /// Returns the date of a word, in seconds since 2001-01-01T00:00:00Z. A time without a zone is local time, and a day
    /// alone is its beginning. Accepts times as macOS's `defaults` prints them: `2026-11-21 09:30:00 +0000`.
    ///
    /// - Throws: ``Failure`` with the reason, if the word isn't a date.
    static func seconds(_ word: String) throws -> Double {
        let text = standardForm(of: word)
        if let midnight = DateText.seconds(text), text.utf8.count == 10 { return local(midnight).seconds }
        if let seconds = DateText.seconds(text) { return seconds }
        if let clock = DateText.seconds(text + "Z") {
            let (seconds, exists) = local(clock)
            if exists { return seconds }
            throw Failure(.usage, "\(Output.quoted(word)) doesn't go with -date: clocks here skip that time.")
        }
        throw Failure(.usage, "\(Output.quoted(word)) doesn't go with -date: \(objection(to: word)).")
    }

    /// Returns a time that contains spaces in ISO 8601 form, and other words as they are.
    private static func standardForm(of word: String) -> String {
        let parts = word.split(separator: " ", omittingEmptySubsequences: false)
        guard (2...3).contains(parts.count) else { return word }
        let zone = parts.dropFirst(2).first.map { $0.utf8.count == 5 ? "\($0.prefix(3)):\($0.suffix(2))" : "\($0)" }
        return "\(parts[0])T\(parts[1])\(zone ?? "")"
    }

    /// Returns when local clocks show what UTC's show at a time, and whether they ever do. Where they show it twice,
    /// because they are put back, it is the first time. A time that is skipped when clocks are put forward is read as
    /// mktime(3) reads it.
    private static func local(_ clock: Double) -> (seconds: Double, exists: Bool) {
        let epoch: Double = 978_307_200
        guard let shown = time_t(exactly: (clock + epoch).rounded(.down)) else { return (clock, true) }
        let guess = reading(of: shown, daylightSaving: -1)
        let times = [guess, reading(of: shown, daylightSaving: 0), reading(of: shown, daylightSaving: 1)]
            .filter { $0.exists }.map { $0.time }
        return (clock - Double(shown - (times.min() ?? guess.time)), !times.isEmpty)
    }

    /// Returns when local clocks show what UTC's show at a time, with or without daylight saving time or, for -1, as
    /// mktime(3) decides; and whether they show it then.
    private static func reading(of shown: time_t, daylightSaving: Int32) -> (time: time_t, exists: Bool) {
        var (time, parts) = (shown, tm())
        gmtime_r(&time, &parts)
        parts.tm_isdst = daylightSaving
        let (day, hour, minute) = (parts.tm_mday, parts.tm_hour, parts.tm_min)
        time = mktime(&parts)
        return (time, (parts.tm_mday, parts.tm_hour, parts.tm_min) == (day, hour, minute))
    }

    /// Returns the impossible part of a time or a zone, such as 24:00, 09:30:60 or +25:00; `nil` if there is none.
    private static func impossibleTime(_ text: String) -> String? {
        let zone = text.firstIndex { "+-".contains($0) } ?? text.endIndex
        return impossible(text[..<zone]) ?? impossible(text[zone...].dropFirst()).map { "\(text[zone])\($0)" }
    }

    /// Returns a time of day without a fraction, if it is impossible.
    private static func impossible(_ text: Substring) -> String? {
        let time = text.prefix { $0.isASCII && ($0.isWholeNumber || $0 == ":") }
        let parts = time.split(separator: ":", omittingEmptySubsequences: false)
        guard (2...3).contains(parts.count), parts.allSatisfy({ $0.utf8.count == 2 }) else { return nil }
        let numbers = parts.compactMap { UInt($0) }
        guard numbers.count == parts.count, numbers[0] > 23 || numbers.dropFirst().contains(where: { $0 > 59 }) else {
            return nil
        }
        return String(time)
    }

    private static func objection(to word: String) -> String {
        let parts = word.prefix(10).split(separator: "-", omittingEmptySubsequences: false)
        let isDay = parts.map(\.utf8.count) == [4, 2, 2] && parts.allSatisfy { UInt($0) != nil }
        guard isDay, DateText.seconds(String(word.prefix(10))) == nil else {
            if isDay, let time = impossibleTime(String(word.dropFirst(11))) {
                return localized("there is no time \(time)")
            }
            return localized(
                """
                it takes a time such as 2026-11-21T09:30:00Z, 2026-11-21T10:30:00+01:00 or, here, 2026-11-21T09:30
                """)
        }
        let month = "\(parts[0])-\(parts[1])"
        let last = (28...31).last { DateText.seconds("\(month)-\($0)") != nil }
        return last.map { localized("the month \(month) has \($0) days") } ?? localized("there is no month \(month)")
    }
}
