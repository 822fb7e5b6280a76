// SPDX-License-Identifier: Apache-2.0

/// How often the process died while an account was in a sync cycle, and what follows from that.
///
/// A remote that finds a way to end the service would do so again at each start, since accounts resume. So an account
/// during whose cycle the process died twice within ten minutes waits: ten minutes, and twice as long after each death
/// that follows, up to a day. It need not be the culprit, as others were in a cycle as well; so those that are suspected
/// make their next cycles one after the other (``SyncRecord``), which clears all but one.
///
/// Times are microseconds since the machine was started.
struct SyncDeaths: Equatable {
    /// Identifies the start of the machine: what happened before it proves nothing.
    let boot: String
    /// Deaths that belong together.
    private(set) var count = 0
    /// When the cycle of the last death had begun.
    private(set) var last: UInt64 = 0
    /// When the cycle began that is under way.
    private(set) var begun: UInt64?

    private static let minute: UInt64 = 60_000_000
    private static let shortestWait = 10 * minute
    private static let longestWait = 24 * 60 * minute

    init(boot: String) { self.boot = boot }

    /// What a process finds that begins: a cycle that has not ended is one during which the process before it died.
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

    /// What is kept for the next process.
    var text: String { "\(boot) \(count) \(last) \(begun ?? 0)\n" }

    /// The process died in the last cycle.
    var isSuspect: Bool { count > 0 }

    mutating func begin(_ now: UInt64) { begun = max(now, 1) }

    /// How many seconds are left to wait; `nil`: none.
    func wait(_ now: UInt64) -> Int? {
        guard count > 1 else { return nil }
        let wait = min(Self.shortestWait << UInt64(min(count - 2, 20)), Self.longestWait)
        let passed = now < last ? 0 : now - last
        return passed < wait ? Int((wait - passed) / 1_000_000) + 1 : nil
    }
}
