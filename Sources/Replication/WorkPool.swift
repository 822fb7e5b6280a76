// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// A few threads for work that takes long, or that waits for a disk or another machine. Threads start when there is
/// work, and end soon after the last of it, so idle accounts have none.
///
/// Each ``WorkThread`` gives its work to a pool, which takes one piece of each in turn. Work that can block for hours,
/// for example on a mount whose server is gone, has a pool of its own, so that it delays nothing else. There, the work of
/// one owner has two threads, and a third once one of them has waited for a minute: a user's mount may never answer, and
/// the user may sign in there again and again, or at another place. The work at one place has at most a third of the
/// threads. Once one of an owner's threads has waited there for a minute, the owner gets no other there; once threads of
/// three owners have, nobody does. One user's may wait for something that the user has mounted in the folder.
///
/// It is no dispatch queue, because libdispatch wakes up every second to look after its pool, and sets its threads'
/// priorities, which the service's unit forbids.
package final class WorkPool: Sendable {
    /// For the databases of users, on this machine's disk.
    package static let disk = WorkPool(threads: 8)
    /// For folders that users have chosen, which may be anywhere.
    package static let folders = WorkPool(threads: 24, perOwner: 2, perPlace: 8)
    /// For work that takes only CPU time.
    package static let decoding = WorkPool(threads: 4)

    private let limit: Int
    private let shares: Shares
    /// How many seconds a thread waits for more work.
    private let patience: Double
    private let startThread: @Sendable (WorkPool) -> Bool
    private let state = Mutex(State())
    private nonisolated(unsafe) let hasMore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    // Safe because a semaphore is there for threads to share.

    private struct State {
        /// The queues with work that no thread has taken yet, in their order.
        var ready: [WorkThread] = []
        var threads = 0
        /// The number of waiting threads that were not woken yet.
        var idle = 0
        /// The turns of queues with an owner or a place.
        var turns: [Turn] = []

        /// The first queue that may have another thread.
        func next(_ shares: Shares) -> Int? {
            let now = WorkPool.now
            return ready.firstIndex { shares.allow($0, besides: turns, now) }
        }

        /// Takes that queue, whose turn begins.
        mutating func take(_ shares: Shares) -> WorkThread? {
            guard let index = next(shares) else { return nil }
            let queue = ready.remove(at: index)
            let turn = Turn(queue: queue, place: queue.place, start: WorkPool.now)
            if queue.owner != nil || turn.place != nil { turns.append(turn) }
            return queue
        }

        /// Notes that a queue's turn is over.
        mutating func release(_ queue: WorkThread) { turns.removeAll { $0.queue === queue } }
    }

    /// A queue that has a thread.
    private struct Turn {
        let queue: WorkThread
        /// Where its work is done.
        let place: String?
        /// When the turn began, in milliseconds.
        let start: Int
    }

    /// How many threads the work of one owner and at one place may have at a time.
    private struct Shares {
        let perOwner: Int
        let perPlace: Int
        /// How long a turn takes that counts as one that never ends, in milliseconds.
        let patience: Int

        private static let witnesses = 3

        /// Whether a place counts as one that never answers an owner.
        func isDead(_ place: String, for owner: UInt32?, _ turns: [Turn], _ now: Int) -> Bool {
            let owners = Set(turns.filter { $0.place == place && now - $0.start >= patience }.map(\.queue.owner))
            return owners.contains(owner) || owners.count >= Self.witnesses
        }

        func allow(_ queue: WorkThread, besides turns: [Turn], _ now: Int) -> Bool {
            if let place = queue.place {
                if turns.count(where: { $0.place == place }) >= perPlace { return false }
                if isDead(place, for: queue.owner, turns, now) { return false }
            }
            guard let owner = queue.owner else { return true }
            let own = turns.filter { $0.queue.owner == owner }
            guard queue.place != nil else { return own.count < perOwner }
            return own.count <= perOwner && own.count { now - $0.start < patience } < perOwner
        }
    }

    /// Milliseconds of CLOCK_MONOTONIC.
    private static var now: Int {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return now.tv_sec * 1000 + now.tv_nsec / 1_000_000
    }

    private enum Need { case nothing, wakeUp, thread }

    /// Makes a pool, without starting a thread.
    ///
    /// - Parameters:
    ///   - threads: the most threads at a time.
    ///   - ownerLimit: the most threads for one owner's work, besides one once one of them has waited for `longestTurn`
    ///     seconds at another place; `nil` means all.
    ///   - placeLimit: the most threads for the work at one place; `nil` means all.
    ///   - patience: how many seconds a thread waits for more work: longer than a disk or a nearby server takes to
    ///     answer, since the work of a sync cycle comes in pieces.
    package convenience init(
        threads: Int, perOwner ownerLimit: Int? = nil, perPlace placeLimit: Int? = nil, longestTurn: Int = 60,
        patience: Double = 0.25
    ) {
        self.init(
            threads: threads, perOwner: ownerLimit, perPlace: placeLimit, longestTurn: longestTurn, patience: patience
        ) { $0.start() }
    }

    /// A pool that starts its threads in another way.
    init(
        threads: Int, perOwner ownerLimit: Int? = nil, perPlace placeLimit: Int? = nil, longestTurn: Int = 60,
        patience: Double = 0.25,
        start: @escaping @Sendable (WorkPool) -> Bool
    ) {
        (limit, self.patience, startThread) = (threads, patience, start)
        shares = Shares(perOwner: ownerLimit ?? threads, perPlace: placeLimit ?? threads, patience: longestTurn * 1000)
        sem_init(hasMore, 0, 0)
    }

    deinit {
        sem_destroy(hasMore)
        hasMore.deallocate()
    }

    /// What keeps work from getting a thread, for as long as something doesn't answer.
    package enum Obstacle { case place, others }

    /// Returns what keeps an owner's work at a place from getting a thread: threads that have waited too long there, or all
    /// of the owner's or of the pool's, wherever they are. Work that only has to wait for its turn has no obstacle.
    package func obstacle(at place: String, of owner: UInt32) -> Obstacle? {
        let (now, turns) = (Self.now, state.withLock(\.turns))
        if shares.isDead(place, for: owner, turns, now) { return .place }
        let stuck = turns.filter { now - $0.start >= shares.patience }
        let isOwnersLast = stuck.count { $0.queue.owner == owner } > shares.perOwner
        return isOwnersLast || stuck.count >= limit ? .others : nil
    }

    /// Gives threads to work that may begin because time has passed.
    package func reconsider() {
        let need = state.withLock { $0.next(shares) == nil ? Need.nothing : thread(&$0) }
        provide(need)
    }

    /// Whether no thread works, and none has anything to do.
    package var isAtRest: Bool { state.withLock { $0.ready.isEmpty && $0.threads == $0.idle } }

    /// Notes that a queue has work.
    func add(_ queue: WorkThread) {
        let need = state.withLock { state -> Need in
            state.ready.append(queue)
            return thread(&state)
        }
        provide(need)
    }

    /// Counts one more thread that works.
    private func thread(_ state: inout State) -> Need {
        if state.idle > 0 {
            state.idle -= 1
            return .wakeUp
        }
        guard state.threads < limit else { return .nothing }
        state.threads += 1
        return .thread
    }

    private func provide(_ need: Need) {
        switch need {
        case .nothing: break
        case .wakeUp: sem_post(hasMore)
        case .thread: if !startThread(self) { withoutThread() }
        }
    }

    func start() -> Bool {
        let argument = Unmanaged.passRetained(self).toOpaque()
        var thread = pthread_t()
        let result = pthread_create(
            &thread, nil,
            { argument in
                var signals = sigset_t()
                sigfillset(&signals)
                pthread_sigmask(SIG_BLOCK, &signals, nil)
                if let argument { Unmanaged<WorkPool>.fromOpaque(argument).takeRetainedValue().runAll() }
                return nil
            }, argument)
        if result == 0 {
            pthread_detach(thread)
        } else {
            Unmanaged<WorkPool>.fromOpaque(argument).release()
        }
        return result == 0
    }

    /// Handles a thread that could not be started: the existing ones do the work. If there are none, another attempt
    /// comes later. The caller never does the work, since it may be the thread that answers calls.
    private func withoutThread() {
        let isAlone = state.withLock { state in
            state.threads -= 1
            return state.threads == 0 && !state.ready.isEmpty
        }
        guard isAlone else { return }
        let wait = Self.later.withLock(\.self)
        wait { self.startAgain() }
    }

    /// Starts a thread for work that waits for one.
    private func startAgain() {
        let isNeeded = state.withLock { state in
            guard state.threads == 0, !state.ready.isEmpty else { return false }
            state.threads = 1
            return true
        }
        if isNeeded, !startThread(self) { withoutThread() }
    }

    private static let later = Mutex<@Sendable (@escaping @Sendable () -> Void) -> Void>({ _ in })

    /// Sets what calls a closure a little later, without a thread for it: an event loop.
    package static func retry(by later: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
        self.later.withLock { $0 = later }
    }

    private func runAll() {
        while true {
            while let queue = next() { runOne(of: queue) }
            if !waitForMore() { return }
        }
    }

    private func runOne(of queue: WorkThread) {
        let hasMore = queue.runOne()
        state.withLock { state in
            state.release(queue)
            if hasMore { state.ready.append(queue) }
        }
    }

    /// The queue whose turn it is.
    private func next() -> WorkThread? {
        state.withLock { $0.take(shares) }
    }

    /// - Returns: false if nothing came, and this thread ends.
    private func waitForMore() -> Bool {
        let hasWork = state.withLock { state in
            let hasWork = state.next(shares) != nil
            if !hasWork { state.idle += 1 }
            return hasWork
        }
        if hasWork || hasBeenWoken() { return true }
        let isOver = state.withLock { state in
            guard state.idle > 0 else { return false }
            state.idle -= 1
            state.threads -= 1
            return true
        }
        // All that wait are about to be woken, this one too.
        if !isOver { while sem_wait(hasMore) != 0 {} }
        return !isOver
    }

    private func hasBeenWoken() -> Bool {
        var end = timespec()
        // On a clock that may be set: the thread then ends sooner or later, which does no harm.
        clock_gettime(CLOCK_REALTIME, &end)
        let nanoseconds = end.tv_nsec + Int(patience * 1e9)
        (end.tv_sec, end.tv_nsec) = (end.tv_sec + nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
        while sem_timedwait(hasMore, &end) != 0 {
            if errno != EINTR { return false }
        }
        return true
    }
}
