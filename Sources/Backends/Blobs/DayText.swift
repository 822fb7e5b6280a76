// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Times in sentences for users.
enum DayText {
    /// Returns the minute of a time in microseconds since 1970, as in `2026-11-20 10:00 UTC`.
    static func utc(_ microseconds: UInt64) -> String {
        var seconds = time_t(microseconds / 1_000_000)
        var parts = tm()
        guard gmtime_r(&seconds, &parts) != nil else { return "at an unknown time" }
        func digits(_ number: Int32) -> String { (number < 10 ? "0" : "") + "\(number)" }
        return "\(Int(parts.tm_year) + 1900)-\(digits(parts.tm_mon + 1))-\(digits(parts.tm_mday)) "
            + "\(digits(parts.tm_hour)):\(digits(parts.tm_min)) UTC"
    }
}
