// SPDX-License-Identifier: Apache-2.0

/// When an account looks at its remote, and when it uploads.
///
/// A value that is told what happens and says when the next pass is due; it has no clock and no timer.
/// All times are microseconds of one monotonic clock.
public struct SyncSchedule: Equatable, Sendable {
    /// What the backend costs. It may come to tell of changes, or not to any more.
    public var traits: BackendTraits
    /// What an administrator says of how often something is done.
    public private(set) var pace: SyncPace
    private var shortestPoll: UInt64
    private var longestPoll: UInt64

    private var pullDue: UInt64?
    private var pushDue: UInt64?
    private var cycleUploads = false
    private var retryAt: UInt64?
    /// The remote wants nothing before, and nothing is tried before, whatever happens.
    private var earliestRetry: UInt64 = 0
    private var failures = 0
    private var pollInterval: UInt64
    private var lastLook: UInt64 = 0
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

    /// A schedule for a backend, which is looked at at once.
    public init(_ traits: BackendTraits, pace: SyncPace = SyncPace(), now: UInt64) {
        self.traits = traits
        self.pace = pace
        (shortestPoll, longestPoll) = pace.polls
        pollInterval = shortestPoll
        pullDue = now
    }

    /// An administrator says otherwise: what is due comes no later than it would if it were noted now.
    public mutating func follow(_ pace: SyncPace, _ now: UInt64) {
        self.pace = pace
        (shortestPoll, longestPoll) = pace.polls
        pushDue = pushDue.map { min($0, max(now + coalescing, uploads.nextToken(now))) }
        pullDue = pullDue.map { min($0, now + interval) }
    }

    /// When the next pass is due; `nil`: not before something happens.
    public var nextCycle: UInt64? {
        if pullDue == nil, pushDue == nil { return nil }
        return max(min(pullDue ?? .max, pushDue ?? .max), retryAt ?? 0)
    }

    /// When failed attempts are made up for; `nil` if the last one did not fail.
    public var nextAttempt: UInt64? { retryAt }

    /// Somebody begins to listen, or nobody does any more. Whoever begins has come to see what is new, and does not wait
    /// for a look that was put off while nobody listened.
    public mutating func noteSubscribers(_ hasSubscribers: Bool, _ now: UInt64) {
        self.hasSubscribers = hasSubscribers
        guard hasSubscribers, !traits.tellsOfChanges else { return }
        pollInterval = shortestPoll
        pullDue = pullDue.map { min($0, max(now, lastLook + shortestPoll)) }
    }

    /// Something was written on this device.
    public mutating func noteChange(_ now: UInt64) {
        if pushDue == nil { pushDue = max(now + coalescing, uploads.nextToken(now)) }
        pollInterval = shortestPoll
    }

    /// The remote says that it has something new.
    public mutating func noteHint(_ now: UInt64) {
        pullDue = now
    }

    /// There may be a way to the remote that there was not before: what has failed is tried again at once. Names may be
    /// looked up a little later only, so the next attempts are soon, too; and where ways come and go all the time, it is
    /// not tried each time.
    public mutating func noteNetwork(_ now: UInt64) {
        guard let next = retryAt else { return }
        retryAt = min(next, max(now, earliestRetry))
        failures = min(failures, Self.failuresBeforeNetwork)
    }

    /// Somebody wants what is pending to be uploaded without waiting for more.
    public mutating func hasten(_ now: UInt64) {
        if pushDue != nil { pushDue = max(now, uploads.nextToken(now)) }
    }

    /// Somebody wants a pass now, whatever failed before.
    public mutating func request(_ now: UInt64) {
        pullDue = now
        pushDue = now
        retryAt = nil
    }

    /// A pass begins: what happens from now on is for the next one.
    /// - Returns: whether it is to upload what is pending.
    public mutating func begin(_ now: UInt64) -> Bool {
        pullDue = nil
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
        (failures, retryAt, lastLook) = (0, nil, now)
        if uploaded { uploads.take(now) }
        pushDue = isPending ? pushDue ?? max(now + coalescing, uploads.nextToken(now)) : nil
        pollInterval = received || uploaded ? shortestPoll : min(pollInterval * 3 / 2, longestPoll)
        pullDue = min(pullDue ?? .max, now + interval)
    }

    /// A pass has failed.
    /// - Parameters:
    ///   - retryAfter: what the remote asked for, in seconds.
    ///   - jitter: any number; it spreads the attempts of many devices.
    public mutating func failed(_ now: UInt64, retryAfter: Int?, jitter: UInt64) {
        failures += 1
        let backoff = min(Self.firstRetry << UInt64(min(failures - 1, 10)), Self.lastRetry)
        let spread = backoff / 4
        let asked = UInt64(min(max(0, retryAfter ?? 0), 86_400)) * Self.second
        retryAt = now + max(asked, backoff - spread / 2 + jitter % max(spread, 1))
        earliestRetry = now + max(asked, Self.leastRest)
        pullDue = now
        if cycleUploads { pushDue = pushDue ?? now }
    }

    private var coalescing: UInt64 { (pace.coalescing ?? traits.coalescing).microseconds }

    private var interval: UInt64 {
        if traits.tellsOfChanges { return Self.precaution }
        return hasSubscribers ? max(shortestPoll, min(pollInterval, longestPoll)) : longestPoll
    }
}

/// At most so many uploads at once, and one more in each interval.
private struct TokenBucket: Equatable, Sendable {
    let capacity: UInt64
    let interval: UInt64
    /// When the bucket was, or will be, full; each token that is taken puts it off.
    private var fullAt: UInt64 = 0

    init(capacity: UInt64, interval: UInt64) {
        self.capacity = capacity
        self.interval = interval
    }

    func nextToken(_ now: UInt64) -> UInt64 {
        let spare = (capacity - 1) * interval
        return max(now, fullAt > spare ? fullAt - spare : 0)
    }

    mutating func take(_ now: UInt64) {
        fullAt = max(fullAt, now) + interval
    }
}
