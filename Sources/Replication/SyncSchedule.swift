// SPDX-License-Identifier: Apache-2.0

/// When an account looks at its remote, and when it uploads.
///
/// A value that is told what happens and says when the next cycle is due; it has no clock and no timer.
/// All times are microseconds of one monotonic clock.
public struct SyncSchedule: Equatable, Sendable {
    /// What the backend costs. It may come to tell of changes, or not to any more.
    public var traits: BackendTraits
    /// What an administrator says of how often something is done.
    public private(set) var pace: SyncPace
    /// Whether the user is present, and what the machine has to save.
    public private(set) var circumstances: SyncCircumstances

    private var pullDue: UInt64?
    private var pushDue: UInt64?
    private var cycleUploads = false
    private var retryAt: UInt64?
    /// The remote wants nothing before, and nothing is tried before, whatever happens.
    private var earliestRetry: UInt64 = 0
    private var failures = 0
    private var pollInterval: UInt64
    private var lastLook: UInt64?
    private var lastUpload: UInt64?
    /// A pass is under way, whose end says when the next one is due.
    private var isCycling = false
    private var uploads = TokenBucket(capacity: 15, interval: 4 * second)

    /// Whether there are subscribers decides how often a remote that tells of nothing is looked at.
    public var hasSubscribers = false

    private static let second: UInt64 = 1_000_000
    /// A remote that tells of changes is looked at all the same: a hint may be lost.
    private static let precaution = 900 * second
    private static let firstRetry = second
    private static let lastRetry = 900 * second
    /// Between attempts, however often ways come and go.
    private static let leastRest = 5 * second
    /// The next attempt is made up for after 4 s then.
    private static let failuresBeforeNetwork = 2
    /// After so long without an upload, the first change goes up early: few others follow it.
    private static let quietTime = 10 * second

    /// A schedule for a backend, which is looked at at once.
    public init(
        _ traits: BackendTraits, pace: SyncPace = SyncPace(), _ circumstances: SyncCircumstances = SyncCircumstances(),
        now: UInt64
    ) {
        self.traits = traits
        self.pace = pace
        self.circumstances = circumstances
        pollInterval = pace.shortestInterval
        pullDue = now
    }

    /// An administrator says otherwise: what is due comes no later than it would if it were noted now.
    public mutating func follow(_ pace: SyncPace, _ now: UInt64) {
        self.pace = pace
        pushDue = pushDue.map { min($0, nextUpload(now)) }
        if let interval { pullDue = min(pullDue ?? (isCycling ? .max : now), now + interval) }
    }

    /// The user comes or goes, or the machine begins or ceases to save something. A user who comes back finds what is new.
    public mutating func follow(_ circumstances: SyncCircumstances, _ now: UInt64) {
        let former = self.circumstances.presence
        if circumstances == self.circumstances { return }
        self.circumstances = circumstances
        if let due = pushDue, due > now {
            pushDue = circumstances.isSparing ? max(due, nextUpload(now)) : min(due, nextUpload(now))
        }
        // What is due already was asked for.
        if !isCycling, pullDue.map({ $0 > now }) ?? true { pullDue = interval.map { max(now, (lastLook ?? 0) + $0) } }
        if circumstances.presence == .present, former == .away || former == .absent {
            (pollInterval, pullDue) = (pace.shortestInterval, min(pullDue ?? .max, nextLook(now)))
        }
    }

    /// The machine was asleep, and heard of nothing.
    public mutating func noteWaking(_ now: UInt64) {
        noteNetwork(now)
        if interval != nil { pullDue = min(pullDue ?? .max, max(now, (lastLook ?? 0) + rest)) }
    }

    /// When the next cycle is due; `nil`: not before something happens.
    public var nextCycle: UInt64? {
        if pullDue == nil, pushDue == nil { return nil }
        return max(min(pullDue ?? .max, pushDue ?? .max), retryAt ?? 0)
    }

    /// When failed attempts are made up for; `nil` if the last one did not fail.
    public var nextAttempt: UInt64? { retryAt }

    /// The first client subscribes, or the last one ends. The first one comes to see what is new, and doesn't wait for a
    /// poll that was put off while there was none.
    public mutating func noteSubscribers(_ hasSubscribers: Bool, _ now: UInt64) {
        self.hasSubscribers = hasSubscribers
        guard hasSubscribers, !traits.tellsOfChanges else { return }
        pollInterval = pace.shortestInterval
        pullDue = pullDue.map { min($0, nextLook(now)) }
    }

    /// Something was written on this device.
    public mutating func noteChange(_ now: UInt64) {
        if pushDue == nil { pushDue = nextUpload(now) }
        pollInterval = pace.shortestInterval
    }

    /// The remote says that it has something new.
    public mutating func noteHint(_ now: UInt64) {
        pullDue = max(now, (lastLook ?? 0) + rest)
    }

    /// There may be a way to the remote that there was not before: what has failed is tried again at once. Names may be
    /// looked up a little later only, so the next attempts are soon, too; and where ways come and go all the time, it is
    /// not tried each time.
    public mutating func noteNetwork(_ now: UInt64) {
        guard let next = retryAt else { return }
        retryAt = min(next, max(now, earliestRetry))
        failures = min(failures, Self.failuresBeforeNetwork)
    }

    /// What is pending is to be uploaded without waiting for more.
    public mutating func hasten(_ now: UInt64) {
        if pushDue != nil { pushDue = max(now, earliestUpload(now)) }
    }

    /// A cycle is to run now, whatever failed before.
    public mutating func request(_ now: UInt64) {
        pullDue = now
        pushDue = now
        retryAt = nil
    }

    /// A pass begins: what happens from now on is for the next one.
    /// - Returns: whether it is to upload what is pending.
    public mutating func begin(_ now: UInt64) -> Bool {
        (pullDue, isCycling) = (nil, true)
        cycleUploads = pushDue.map { $0 <= now } ?? false
        if cycleUploads { pushDue = nil }
        return cycleUploads
    }

    /// A pass has ended well.
    /// - Parameters:
    ///   - received: it brought changes.
    ///   - uploaded: it uploaded.
    ///   - isPending: there is still something to upload.
    public mutating func passed(_ now: UInt64, received: Bool, uploaded: Bool, isPending: Bool) {
        (failures, retryAt, lastLook, isCycling) = (0, nil, now, false)
        if uploaded {
            uploads.take(now)
            lastUpload = now
        }
        pushDue = isPending ? pushDue ?? nextUpload(now) : nil
        pollInterval = received || uploaded ? pace.shortestInterval : min(pollInterval * 3 / 2, longestPoll ?? .max)
        if let interval { pullDue = min(pullDue ?? .max, now + interval) }
    }

    /// A pass has failed.
    /// - Parameters:
    ///   - retryAfter: what the remote asked for, in seconds.
    ///   - jitter: any number; it spreads the attempts of many devices.
    public mutating func failed(_ now: UInt64, retryAfter: Int?, jitter: UInt64) {
        (failures, isCycling) = (failures + 1, false)
        let backoff = min(Self.firstRetry << UInt64(min(failures - 1, 10)), Self.lastRetry)
        let spread = backoff / 4
        let asked = UInt64(min(max(0, retryAfter ?? 0), 86_400)) * Self.second
        retryAt = now + max(asked, rest, backoff - spread / 2 + jitter % max(spread, 1))
        earliestRetry = now + max(asked, rest, Self.leastRest)
        pullDue = now
        if cycleUploads { pushDue = pushDue ?? now }
    }

    // MARK: Intervals

    private var longestPoll: UInt64? { pace.longestInterval(circumstances.presence) }
    private var rest: UInt64 { pace.rest(circumstances) }

    /// How long after a poll the next one is due; `nil`: not before something happens.
    private var interval: UInt64? {
        guard let longestPoll else { return nil }
        if traits.tellsOfChanges { return max(Self.precaution, rest) }
        return max(rest, hasSubscribers ? max(pace.shortestInterval, min(pollInterval, longestPoll)) : longestPoll)
    }

    /// When a user who has come back gets what is new: soon, and not twice within the shortest interval.
    private func nextLook(_ now: UInt64) -> UInt64 {
        lastLook.map { max(now, $0 + max(pace.shortestInterval, rest)) } ?? now
    }

    /// When a change that is made now is uploaded.
    private func nextUpload(_ now: UInt64) -> UInt64 {
        let isQuiet = lastUpload.map { now >= $0 + Self.quietTime } ?? true
        let wait = pace.coalescing ?? (isQuiet ? traits.firstWait : traits.coalescing)
        return max(now + wait.microseconds, earliestUpload(now))
    }

    private func earliestUpload(_ now: UInt64) -> UInt64 {
        max(uploads.nextToken(now), rest == 0 ? 0 : lastUpload.map { $0 + rest } ?? 0)
    }
}
