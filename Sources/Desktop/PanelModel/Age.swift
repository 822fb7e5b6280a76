// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop

/// Times as people say them. All are microseconds since 1970-01-01T00:00:00Z, and 0 is never.
enum Age {
    private static let minute: UInt64 = 60_000_000

    /// How long ago something was; a date if it is more than a day.
    static func text(of time: UInt64, at now: UInt64) -> String {
        if time == 0 { return tr("Never") }
        // A clock that was set back is no reason to say anything odd.
        let minutes = now > time ? (now - time) / minute : 0
        switch minutes {
        case 0: return tr("Just now")
        case 1..<60: return trn("%1 minute ago", "%1 minutes ago", Int(minutes))
        case 60..<1440: return trn("%1 hour ago", "%1 hours ago", Int(minutes / 60))
        default: return dateText(time) ?? tr("Unknown")
        }
    }

    /// How long it is until something; `nil` if it is due.
    static func text(until time: UInt64, at now: UInt64) -> String? {
        guard time > now else { return nil }
        let minutes = (time - now + minute - 1) / minute
        if minutes < 60 { return trn("in %1 minute", "in %1 minutes", Int(minutes)) }
        return trn("in %1 hour", "in %1 hours", Int(min(minutes / 60, 10_000)))
    }
}
