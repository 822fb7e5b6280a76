// SPDX-License-Identifier: Apache-2.0

internal import Replication

/// Decides when a device checks that the segments of its head are still there, and intact.
struct SegmentDoubts {
    /// When all of them last became doubtful, in microseconds; at first, when this process first polled.
    private var doubtedAt: UInt64?
    /// The latest replaced head of this device that others had time to read.
    private var settled: Head?
    /// When another device's head last changed, in microseconds; `nil` once the segments were checked since.
    private var changedAt: UInt64?

    private static let interval: UInt64 = 600_000_000
    /// The time that others have to read a head, in microseconds: a device polls just before it publishes.
    private static let readingTime: UInt64 = 120_000_000

    /// Whether other devices have written since the segments were checked.
    var haveOthersWritten: Bool { changedAt != nil }

    /// Notes that other devices have written something.
    mutating func noteChange(_ now: UInt64) { changedAt = now }

    /// Returns true, once, when others have written and then paused for ``interval``.
    mutating func takeQuietPeriod(_ now: UInt64) -> Bool {
        guard let changedAt, now < changedAt || now - changedAt > Self.interval else { return false }
        self.changedAt = nil
        return true
    }

    /// Notes that a head of this device was replaced at a time.
    mutating func noteReplaced(_ former: Head, at time: UInt64) {
        if former.time <= time, time - former.time >= Self.readingTime { settled = former }
    }

    /// Decides whether to doubt all segments: once a day, and sooner if another device publishes without having joined
    /// what it had time to read. It may have found a damaged segment, and has no way to say so.
    /// - Parameters:
    ///   - found: the heads in the remote.
    ///   - before: the heads that the previous pull found.
    mutating func areDue(
        _ now: UInt64, isThorough: Bool, own: Head, found: [String: FoundHead], since before: [String: FoundHead]
    ) -> Bool {
        let age = doubtedAt.map { now < $0 ? UInt64.max : now - $0 } ?? 0
        let isDue = isThorough && age >= Retention.day
        guard isDue || (age >= Self.interval && isBehind(now, own, found, since: before)) else {
            doubtedAt = doubtedAt ?? now
            return false
        }
        doubtedAt = now
        return true
    }

    private func isBehind(
        _ now: UInt64, _ own: Head, _ found: [String: FoundHead], since before: [String: FoundHead]
    ) -> Bool {
        let hadTime = own.time <= now && now - own.time >= Self.readingTime
        guard let read = hadTime ? own : settled, read.origin == own.origin else { return false }
        return found.contains { name, found in
            guard found.isWhole, !found.isCopy, found.head.origin != own.origin, before[name]?.digest != found.digest
            else { return false }
            return !found.head.dominates(read)
        }
    }
}
