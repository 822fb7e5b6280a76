// SPDX-License-Identifier: Apache-2.0

/// How often the process died while an account was in a sync cycle, and how long the account waits for that.
///
/// A remote that finds a way to end the service would do so again at each start, because accounts resume. So an account
/// waits if the process died twice within ten minutes during its cycles: ten minutes, and twice as long after each
/// further death, up to a day. It need not be the culprit, because others were in a cycle as well. So suspected
/// accounts run their next cycles one after the other (``SyncRecord``), which clears all but one.
///
/// Times are microseconds since the machine was started.
struct SyncDeaths: Equatable {
    /// The identifier of the machine's start. Deaths before it prove nothing.
    let boot: String
    /// How many deaths count together.
    private(set) var count = 0
    /// When the cycle of the last death began.
    private(set) var last: UInt64 = 0
    /// When the cycle under way began.
    private(set) var begun: UInt64?

    private static let minute: UInt64 = 60_000_000
    private static let shortestWait = 10 * minute
    private static let longestWait = 24 * 60 * minute

    init(boot: String) { self.boot = boot }

    /// Reads the last process's record. If a cycle has not ended, that process died during it.
    init(_ text: String, boot: String) {
        self.init(boot: boot)
        let fields = text.split(whereSeparator: \.isWhitespace)
        guard fields.count == 4, fields[0] == boot, let count = Int(fields[1]), (0...1000).contains(count),
            let last = UInt64(fields[2]), let begun = UInt64(fields[3])
        else { return }
        (self.count, self.last) = (count, last)
        if begun > 0 { noteDeath(begun) }
    }

    private mutating func noteDeath(_ begun: UInt64) {
        let belongs = count > 1 || begun < last || begun - last <= Self.shortestWait
        count = count > 0 && belongs ? min(count + 1, 1000) : 1
        last = begun
    }

    /// The record for the next process.
    var text: String { "\(boot) \(count) \(last) \(begun ?? 0)\n" }

    /// Whether the process died during the last cycle.
    var isSuspect: Bool { count > 0 }

    mutating func begin(_ now: UInt64) { begun = max(now, 1) }

    /// Returns how many seconds are left to wait; `nil` if none.
    func wait(_ now: UInt64) -> Int? {
        guard count > 1 else { return nil }
        let wait = min(Self.shortestWait << UInt64(min(count - 2, 20)), Self.longestWait)
        let passed = now < last ? 0 : now - last
        return passed < wait ? Int((wait - passed) / 1_000_000) + 1 : nil
    }
}
