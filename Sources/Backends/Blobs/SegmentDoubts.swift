// SPDX-License-Identifier: Apache-2.0

internal import Replication

/// When a device looks whether the segments of its head are still there, and still what it wrote.
struct SegmentDoubts {
    /// When all of them were doubted last; at first when this process looked first.
    private var doubtedAt: UInt64?
    /// An own head that other devices had time to read before the next one came.
    private var settled: Head?
    /// When another device's head was another one than at the look before, until the segments were looked for some time
    /// later.
    private var changedAt: UInt64?

    private static let interval: UInt64 = 600_000_000
    /// A device that publishes has looked just before.
    private static let readingTime: UInt64 = 120_000_000

    /// Others were seen to do something, and the segments were not looked for since.
    var haveOthersWritten: Bool { changedAt != nil }

    /// Notes that others have written something.
    mutating func noteChange(_ now: UInt64) { changedAt = now }

    /// Whether others have written, and nothing any more for a while; only once.
    mutating func takeCalm(_ now: UInt64) -> Bool {
        guard let changedAt, now < changedAt || now - changedAt > Self.interval else { return false }
        self.changedAt = nil
        return true
    }

    /// Notes that a head gave way to one of another time.
    mutating func noteReplaced(_ former: Head, at time: UInt64) {
        if former.time <= time, time - former.time >= Self.readingTime { settled = former }
    }

    /// Decides whether all segments are to be doubted: once a day, and sooner if another device publishes and has not
    /// taken in what it had time to read. Such a device may have found a segment to be damaged, and cannot say so.
    /// - Parameters:
    ///   - found: the heads that are there.
    ///   - before: those of the look before.
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
