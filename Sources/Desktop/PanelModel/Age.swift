// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop

/// Times in words. All are microseconds since 1970-01-01T00:00:00Z, and 0 is never.
enum Age {
    private static let minute: UInt64 = 60_000_000

    /// Returns how long ago a time was; a date if it was more than a day ago.
    static func text(of time: UInt64, at now: UInt64) -> String {
        if time == 0 { return tr("Never") }
        // If the clock was set back, the time may be in the future.
        let minutes = now > time ? (now - time) / minute : 0
        switch minutes {
        case 0: return tr("Just now")
        case 1..<60: return trn("%1 minute ago", "%1 minutes ago", Int(minutes))
        case 60..<1440: return trn("%1 hour ago", "%1 hours ago", Int(minutes / 60))
        default: return dateText(time) ?? tr("Unknown")
        }
    }

    /// Returns when a device was last seen. The time was recorded at most a day before that, because devices record it
    /// once a day.
    static func lastSeen(_ time: UInt64, at now: UInt64) -> String {
        if time == 0 { return tr("Not seen yet") }
        if now <= time || (now - time) / minute < 1440 { return tr("Seen within the last day") }
        return tr("Last seen: %1", dayText(time) ?? tr("Unknown"))
    }

    /// Returns how long it is until a time; `nil` if it has come.
    static func text(until time: UInt64, at now: UInt64) -> String? {
        guard time > now else { return nil }
        let minutes = (time - now + minute - 1) / minute
        if minutes < 60 { return trn("in %1 minute", "in %1 minutes", Int(minutes)) }
        return trn("in %1 hour", "in %1 hours", Int(min(minutes / 60, 10_000)))
    }
}
