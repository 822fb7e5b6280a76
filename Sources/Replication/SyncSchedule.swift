// SPDX-License-Identifier: Apache-2.0

/// When an account polls its remote, and when it uploads.
///
/// Report events to it, and it computes when the next cycle is due. It has no clock and no timer: all times are
/// microseconds of one monotonic clock, which the caller passes in.
public struct SyncSchedule: Equatable, Sendable {
    /// The backend's present traits. Whether it reports changes may vary.
    public var traits: BackendTraits
    /// The administrator's settings.
    public private(set) var pace: SyncPace
    /// Whether the user is present, and whether the machine saves power or traffic.
    public private(set) var circumstances: SyncCircumstances

    private var pullDue: UInt64?
    private var pushDue: UInt64?
    /// When a cycle that was requested is due.
    private var requestDue: UInt64?
    private var cycleUploads = false
    private var retryAt: UInt64?
    /// The earliest time of the next attempt, whatever happens before.
    private var earliestRetry: UInt64 = 0
    private var failures = 0
    private var pollInterval: UInt64
    private var lastLook: UInt64?
    private var lastUpload: UInt64?
    /// A cycle is under way; its end decides when the next one is due.
    private var isCycling = false
    private var uploads = TokenBucket(capacity: 15, interval: 4 * second)
    private var requests = TokenBucket(capacity: 20, interval: 2 * second)

    /// Whether any client subscribes. A remote that reports no changes is then polled more often.
    public var hasSubscribers = false

    private static let second: UInt64 = 1_000_000
    /// The interval of polls of a remote that reports changes, since a hint may be lost.
    private static let precaution = 900 * second
    private static let firstRetry = second
    private static let lastRetry = 900 * second
    /// The shortest time between attempts, however often networks come and go.
    private static let leastRest = 5 * second
    /// The number of failures that count after the machine joins a network: the attempt after the next comes 4 s later.
    private static let failuresBeforeNetwork = 2
    /// After this long without an upload, the first change is uploaded early, since few others will follow it.
    private static let quietTime = 10 * second

    /// Makes a schedule whose first poll is due at once.
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

    /// Applies new settings. A poll or upload that is already due comes no later than the new settings would have it.
    public mutating func follow(_ pace: SyncPace, _ now: UInt64) {
        self.pace = pace
        pushDue = pushDue.map { min($0, nextUpload(now)) }
        if let interval { pullDue = min(pullDue ?? (isCycling ? .max : now), now + interval) }
    }

    /// Applies new circumstances. When the user comes back, the service polls soon.
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

    /// The machine has woken up: it polls, because it received no hints while asleep.
    public mutating func noteWaking(_ now: UInt64) {
        noteNetwork(now)
        if interval != nil { pullDue = min(pullDue ?? .max, max(now, (lastLook ?? 0) + rest)) }
    }

    /// When the next cycle is due; `nil` if none is before another event.
    public var nextCycle: UInt64? {
        if pullDue == nil, pushDue == nil { return requestDue }
        return min(requestDue ?? .max, max(min(pullDue ?? .max, pushDue ?? .max), retryAt ?? 0))
    }

    /// When the service retries after a failure; `nil` if the last attempt succeeded.
    public var nextAttempt: UInt64? { retryAt.map { min($0, requestDue ?? .max) } }

    /// The first client has subscribed, or the last one has unsubscribed. The first subscriber brings forward a poll
    /// that was put off without subscribers.
    public mutating func noteSubscribers(_ hasSubscribers: Bool, _ now: UInt64) {
        self.hasSubscribers = hasSubscribers
        guard hasSubscribers, !traits.givesHints else { return }
        pollInterval = pace.shortestInterval
        pullDue = pullDue.map { min($0, nextLook(now)) }
    }

    /// A program has written something on this device.
    public mutating func noteChange(_ now: UInt64) {
        if pushDue == nil { pushDue = nextUpload(now) }
        pollInterval = pace.shortestInterval
    }

    /// The backend has sent a hint.
    public mutating func noteHint(_ now: UInt64) {
        pullDue = max(now, (lastLook ?? 0) + rest)
    }

    /// The machine has joined a network: a failed cycle is retried at once. The attempts after it come soon too, since
    /// name lookup may work only a little later. If networks come and go all the time, not each one causes an attempt.
    public mutating func noteNetwork(_ now: UInt64) {
        guard let next = retryAt else { return }
        retryAt = min(next, max(now, earliestRetry))
        failures = min(failures, Self.failuresBeforeNetwork)
    }

    /// Makes pending changes due for upload without waiting for others.
    public mutating func hasten(_ now: UInt64) {
        if pushDue != nil { pushDue = max(now, earliestUpload(now)) }
    }

    /// Whether a cycle was requested that has not begun.
    public var isRequested: Bool { requestDue != nil }

    /// Makes a cycle due now, with an upload, whatever failed before.
    public mutating func request(_ now: UInt64) {
        requestDue = now
    }

    /// Makes such a cycle due now, or soon if many were requested lately. A cycle that begins earlier, for another
    /// reason, does what was requested.
    public mutating func requestAtPace(_ now: UInt64) {
        requestDue = min(requestDue ?? .max, requests.nextToken(now))
    }

    /// A cycle begins; later events are for the next one.
    /// - Returns: whether the cycle is to upload pending changes.
    public mutating func begin(_ now: UInt64) -> Bool {
        if isRequested { requests.take(now) }
        cycleUploads = isRequested || pushDue.map { $0 <= now } ?? false
        if cycleUploads { pushDue = nil }
        (pullDue, requestDue, isCycling) = (nil, nil, true)
        return cycleUploads
    }

    /// The cycle has succeeded.
    /// - Parameters:
    ///   - received: whether it brought changes.
    ///   - uploaded: whether it uploaded.
    ///   - isPending: whether there is still something to upload.
    public mutating func passed(_ now: UInt64, received: Bool, uploaded: Bool, isPending: Bool) {
        (failures, retryAt, lastLook, isCycling) = (0, nil, now, false)
        if uploaded {
            uploads.take(now)
            lastUpload = now
        }
        pushDue = isPending ? pushDue ?? nextUpload(now) : nil
        if received || uploaded {
            pollInterval = pace.shortestInterval
        } else if let longestPoll {
            // At most a day and a half; without polls, it could double until it overflows.
            pollInterval = min(pollInterval * 3 / 2, longestPoll)
        }
        if let interval { pullDue = min(pullDue ?? .max, now + interval) }
    }

    /// The cycle has failed.
    /// - Parameters:
    ///   - retryAfter: for how many seconds the remote asks not to be called; at most a day counts.
    ///   - jitter: a random number, which spreads the attempts of many devices.
    public mutating func failed(_ now: UInt64, retryAfter: Int?, jitter: UInt64) {
        failures += 1
        let backoff = min(Self.firstRetry << UInt64(min(failures - 1, 10)), Self.lastRetry)
        let spread = backoff / 4
        let asked = UInt64(min(max(0, retryAfter ?? 0), 86_400)) * Self.second
        retryAt = now + max(asked, rest, backoff - spread / 2 + jitter % max(spread, 1))
        earliestRetry = now + max(asked, rest, Self.leastRest)
        cut(now)
    }

    /// The cycle has ended early, without an error: what it was to do is due again.
    public mutating func cut(_ now: UInt64) {
        isCycling = false
        pullDue = now
        if cycleUploads { pushDue = pushDue ?? now }
    }

    // MARK: Intervals

    private var longestPoll: UInt64? { pace.longestInterval(circumstances.presence) }
    private var rest: UInt64 { pace.rest(circumstances) }

    /// The time from one poll to the next; `nil` if there is none before another event.
    private var interval: UInt64? {
        guard let longestPoll else { return nil }
        if traits.givesHints { return max(Self.precaution, rest) }
        return max(rest, hasSubscribers ? max(pace.shortestInterval, min(pollInterval, longestPoll)) : longestPoll)
    }

    /// When to poll for a user who has come back: soon, but not twice within the shortest interval.
    private func nextLook(_ now: UInt64) -> UInt64 {
        lastLook.map { max(now, $0 + max(pace.shortestInterval, rest)) } ?? now
    }

    /// When to upload a change that is made now.
    private func nextUpload(_ now: UInt64) -> UInt64 {
        let isQuiet = lastUpload.map { now >= $0 + Self.quietTime } ?? true
        let wait = pace.coalescing ?? (isQuiet ? traits.firstWait : traits.coalescing)
        return max(now + wait.microseconds, earliestUpload(now))
    }

    private func earliestUpload(_ now: UInt64) -> UInt64 {
        max(uploads.nextToken(now), rest == 0 ? 0 : lastUpload.map { $0 + rest } ?? 0)
    }
}
