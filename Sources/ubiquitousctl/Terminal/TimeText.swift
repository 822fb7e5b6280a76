// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import PropertyList
internal import PropertyListFiles

/// Times of the service, which are microseconds since 1970.
enum TimeText {
    /// The seconds from 1970 to 2001.
    private static let epoch: Double = 978_307_200

    /// Returns a time in UTC and whole seconds; `nil` for never.
    static func utc(_ microseconds: UInt64) -> String? {
        microseconds == 0 ? nil : DateText.text((Double(microseconds) / 1_000_000).rounded(.down) - epoch)
    }

    /// Returns a time for users, in the local time zone.
    static func local(_ microseconds: UInt64) -> String { text(microseconds, "%Y-%m-%d %H:%M:%S") }

    /// Returns a date for users, in the local time zone.
    static func localDay(_ microseconds: UInt64) -> String { text(microseconds, "%Y-%m-%d") }

    private static func text(_ microseconds: UInt64, _ format: String) -> String {
        if microseconds == 0 { return "never" }
        var time = time_t(clamping: microseconds / 1_000_000)
        var parts = tm()
        localtime_r(&time, &parts)
        var text = [CChar](repeating: 0, count: 64)
        strftime(&text, text.count - 1, format, &parts)
        return text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } } ?? ""
    }

    /// Returns a time in UTC as a value for JSON; `nil` for never.
    static func value(_ microseconds: UInt64) -> Value? {
        utc(microseconds).map { .string(Text($0)) }
    }
}
