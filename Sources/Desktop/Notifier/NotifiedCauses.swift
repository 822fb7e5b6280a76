// SPDX-License-Identifier: Apache-2.0

/// When the user was notified of each cause, so that no cause is reported twice within a day.
struct NotifiedCauses: Equatable {
    static let day: Int64 = 86_400
    private static let largestCount = 256
    private var times: [String: Int64] = [:]

    /// Makes a record without notifications.
    init() {}

    /// Reads lines of a time in seconds since 1970 and a cause. Other lines are ignored.
    init(_ text: String) {
        for line in text.split(separator: "\n").prefix(Self.largestCount) {
            let parts = line.split(separator: " ", maxSplits: 1)
            guard parts.count == 2, let time = Int64(parts[0]), time >= 0 else { continue }
            times[String(parts[1])] = time
        }
    }

    /// Whether the user may be notified of a cause.
    ///
    /// - Parameter now: seconds since 1970-01-01T00:00:00Z.
    func isDue(_ cause: String, at now: Int64) -> Bool { !isRecent(times[cause], at: now) }

    /// Notes that the user was notified, and forgets what is older than a day.
    mutating func note(_ cause: String, at now: Int64) {
        times = times.filter { isRecent($0.value, at: now) }
        if times.count < Self.largestCount { times[cause] = now }
    }

    /// Whether a time is within the last day. A time in the future comes from a wrong clock, and doesn't count.
    private func isRecent(_ time: Int64?, at now: Int64) -> Bool {
        guard let time, time <= now else { return false }
        return now - time < Self.day
    }

    /// The text that ``init(_:)`` reads.
    var text: String { times.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)\n" }.joined() }
}
