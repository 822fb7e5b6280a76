// SPDX-License-Identifier: Apache-2.0

/// Decides which refused writes are logged, and which problems that calls or sync cycles may meet again and again: of
/// each, one a minute per user, so that they don't fill the journal.
struct RefusalLog {
    private struct Lines {
        var last: UInt64
        var left = 0
    }

    private var refusals: [UInt32: Lines] = [:]
    private var problems: [UInt32: Lines] = [:]
    /// The stores without a manifest that users have asked for.
    private var undeclared: [UInt32: Set<String>] = [:]
    /// How many of these are logged for a user.
    private static let mostUndeclared = 16
    private static let interval: UInt64 = 60_000_000

    /// The errors of writes that matter to administrators.
    private static let names: Set = ["QuotaExceeded", "LimitsExceeded", "IOError", "Corrupt"]

    /// Notes a refused write.
    /// - Parameters:
    ///   - name: the error's name on the bus.
    ///   - now: microseconds of a monotonic clock.
    /// - Returns: the line; `nil` if there was one less than a minute ago, or the error concerns only the caller.
    mutating func note(_ name: String, _ message: String, ofUser uid: UInt32, _ now: UInt64) -> String? {
        guard Self.names.contains(String(name.split(separator: ".").last ?? "")) else { return nil }
        return note(message, ofUser: uid, now)
    }

    /// Notes that a user's program asked for a store without a manifest.
    /// - Returns: whether to log it: once for each store, and for a few stores of each user.
    mutating func noteUndeclared(_ identifier: String, of uid: UInt32) -> Bool {
        let known = undeclared[uid, default: []]
        if known.contains(identifier) || known.count >= Self.mostUndeclared { return false }
        undeclared[uid, default: []].insert(identifier)
        return true
    }

    /// Notes a refusal that matters to administrators.
    mutating func note(_ message: String, ofUser uid: UInt32, _ now: UInt64) -> String? {
        guard let left = Self.admit(uid, to: &refusals, now) else { return nil }
        let others = left == 0 ? "" : " (Since the last such line, \(left) more were.)"
        return "A call of \(UserName.text(of: uid)) was refused: \(message)\(others)"
    }

    /// Notes a problem with a user's data or account.
    mutating func note(problem: String, ofUser uid: UInt32, _ now: UInt64) -> String? {
        Self.admit(uid, to: &problems, now).map { problem + AccountLog.omission($0, of: "line") }
    }

    /// Notes a line that is to be logged.
    /// - Returns: how many lines were left out since the last one that was logged; `nil` if this one is, too.
    private static func admit(_ uid: UInt32, to lines: inout [UInt32: Lines], _ now: UInt64) -> Int? {
        if let last = lines[uid]?.last, now < last + interval {
            lines[uid]?.left += 1
            return nil
        }
        let left = lines[uid]?.left ?? 0
        lines[uid] = Lines(last: now)
        return left
    }
}
