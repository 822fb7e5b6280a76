// SPDX-License-Identifier: Apache-2.0

/// How often the process died during a kind of work for a user, and how long the work waits for that.
///
/// A remote or a database that finds a way to end the service would do so again at each start, because the service
/// resumes accounts. So the work waits if the process died during it again and again, within ten minutes: ten minutes,
/// and twice as long after each further death, up to a day.
///
/// Times are microseconds since the machine was started.
struct Deaths: Equatable {
    /// The identifier of the machine's start. Deaths before it prove nothing.
    let boot: String
    /// How many deaths count together.
    private(set) var count = 0
    /// When the work of the last death began.
    private(set) var last: UInt64 = 0
    /// When the work under way began.
    private(set) var begun: UInt64?

    private static let minute: UInt64 = 60_000_000
    private static let shortestWait = 10 * minute
    private static let longestWait = 24 * 60 * minute

    init(boot: String) { self.boot = boot }

    /// Reads the last process's record. If the work has not ended, that process died during it.
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

    /// Whether the process died during the work when it was last done.
    var isSuspect: Bool { count > 0 }

    mutating func begin(_ now: UInt64) { begun = max(now, 1) }

    /// Returns how many seconds are left to wait; `nil` if none.
    /// - Parameter number: after how many deaths the work waits.
    func wait(_ now: UInt64, after number: Int = 2) -> Int? {
        guard count >= number else { return nil }
        let wait = min(Self.shortestWait << UInt64(min(count - number, 20)), Self.longestWait)
        let passed = now < last ? 0 : now - last
        return passed < wait ? Int((wait - passed) / 1_000_000) + 1 : nil
    }
}
