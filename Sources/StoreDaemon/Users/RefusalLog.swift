// SPDX-License-Identifier: Apache-2.0

/// Decides which refused writes are logged: one a minute per user, so that retries don't fill the journal.
struct RefusalLog {
    private struct Refusals {
        var lastLine: UInt64
        var left = 0
    }

    private var users: [UInt32: Refusals] = [:]
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
        if var refusals = users[uid], now < refusals.lastLine + Self.interval {
            refusals.left += 1
            users[uid] = refusals
            return nil
        }
        let left = users[uid]?.left ?? 0
        users[uid] = Refusals(lastLine: now)
        let others = left == 0 ? "" : " (Since the last such line, \(left) more were.)"
        return "A call of \(UserName.text(of: uid)) was refused: \(message)\(others)"
    }
}
