// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus
internal import StoreBus

/// The attempts to use backends for an account: one at a time, each with a time limit.
@BusActor
final class Attempts {
    /// Whether an attempt or a move is under way.
    private(set) var isBusy = false
    /// The latest attempt for a caller, and the one that is under way.
    private var latest: Attempt?
    private var running: Attempt?
    /// How often the account was signed out. An attempt that began before must not sign in again.
    private(set) var signOuts = 0

    /// The callers that wait for the end of a step; `nil` if none is under way.
    private var waiting: [CheckedContinuation<Void, Never>]?

    /// The pace of what attempts and signing out do on the loop's thread, which includes waiting for the disk.
    private var pace = Pace()

    private let limit: Duration

    /// - Parameter limit: the longest time that an attempt may take.
    init(limit: Duration = .seconds(60)) { self.limit = limit }

    private static let busy = BusError.store(
        .busy, "The account is being signed in or checked, or moves to a new key; try again after it.")

    /// Notes that the account was signed out, whatever is under way.
    func noteSignOut() { signOuts += 1 }

    /// Waits until the user may sign in or out again: ten times as long as the loop was busy with the last time, or
    /// waited for the disk.
    func turn() async {
        if !pace.isDue { await EventLoop.pause(.microseconds(Int64(min(pace.missing, Self.longestTurn)))) }
    }

    /// Changes the account on the loop's thread.
    func change<T>(_ work: () throws -> T) rethrows -> T { try pace.run(work) }

    /// The longest time that a caller waits for its turn, in microseconds: shorter than calls wait for their answers.
    private static let longestTurn: UInt64 = 10_000_000

    /// Ends the latest attempt, because its caller has given up.
    func endLatest() { latest?.supersede() }

    /// Makes an attempt for a caller. Callers may give up without notice, so a new call ends the previous attempt and
    /// begins after it; one that still waits fails at once. A move doesn't give way.
    /// - Throws: `Busy` if a move is under way, or if a newer call has ended this one.
    func make<T: Sendable>(_ work: @escaping @Sendable () async throws -> T) async throws -> T {
        let running = running
        if isBusy, running == nil { throw Self.busy }
        let own = Attempt()
        latest?.supersede()
        latest = own
        defer {
            if latest === own { latest = nil }
            own.end()
        }
        if let running { await own.wait(for: running) }
        try own.check()
        await turn()
        do {
            try own.check()
            let result = try await alone {
                self.running = own
                defer { self.running = nil }
                return try await Self.limited(own, limit, work)
            }
            try own.check()
            return result
        } catch {
            try own.check()
            throw error
        }
    }

    /// Runs a piece of work, unless something else is under way.
    /// - Parameter isStep: whether the service does it by itself, so that callers wait for its end.
    /// - Throws: `Busy` if something is under way.
    func alone<T>(asStep isStep: Bool = false, _ body: () async throws -> T) async throws -> T {
        if isBusy { throw Self.busy }
        isBusy = true
        if isStep { waiting = [] }
        defer {
            isBusy = false
            waiting?.forEach { $0.resume() }
            waiting = nil
        }
        return try await body()
    }

    /// Waits for the end of what the service does by itself: nobody asked for it, so no call is refused because of it.
    func stepEnd() async {
        // The step may end before the continuation is there.
        await withCheckedContinuation { if waiting == nil { $0.resume() } else { waiting?.append($0) } }
    }

    /// Runs work with a backend, and cancels it after a minute: a dead network mount never answers, and a server may
    /// send a byte now and then.
    static func limited<T: Sendable>(_ work: @escaping @Sendable () async throws -> T) async throws -> T {
        try await limited(nil, .seconds(60), work)
    }

    private static func limited<T: Sendable>(
        _ attempt: Attempt?, _ limit: Duration, _ work: @escaping @Sendable () async throws -> T
    ) async throws -> T {
        var timer: EventSource?
        defer { timer?.cancel() }
        return try await withCheckedThrowingContinuation { continuation in
            let race = Race(continuation)
            let task = EventLoop.task {
                do { race.end(.success(try await work())) } catch { race.end(.failure(error)) }
            }
            attempt?.work = task
            // Not before: it could be over before the continuation is there.
            timer = EventLoop.shared.after(limit) {
                race.end(.failure(RemoteError(.unavailable, "The remote did not answer within a minute.")))
                task.cancel()
            }
        }
    }
}

/// An attempt with a backend, which a newer one may end.
@BusActor
private final class Attempt {
    /// The work, which may be superseded before it has begun.
    var work: Task<Void, Never>? { didSet { if isSuperseded { work?.cancel() } } }
    private var isSuperseded = false
    private var isOver = false
    /// The attempt that begins after this one.
    private var successor: Attempt?
    private var waiting: CheckedContinuation<Void, Never>?

    /// Fails the attempt, even if its result has already arrived.
    func supersede() {
        isSuperseded = true
        work?.cancel()
        goOn()
    }

    /// Waits until another attempt has ended, or this one is superseded. One that hangs ends after its minute.
    func wait(for running: Attempt) async {
        running.successor = self
        // Either may happen before the continuation is there.
        await withCheckedContinuation { if running.isOver || isSuperseded { $0.resume() } else { waiting = $0 } }
    }

    private func goOn() {
        waiting?.resume()
        waiting = nil
    }

    func end() {
        isOver = true
        successor?.goOn()
    }

    /// Throws if a newer call has ended this attempt.
    func check() throws(BusError) {
        if isSuperseded { throw .store(.busy, "A newer call has ended this one.") }
    }
}
