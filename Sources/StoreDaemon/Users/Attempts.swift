// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus
internal import StoreBus

/// What is tried with backends for one account: one thing at a time, and none for ever.
@BusActor
final class Attempts {
    /// Something is tried.
    private(set) var isBusy = false
    /// What is tried for a caller.
    private var latest: Attempt?
    /// How often the account was signed out: what was begun before must not go over to it.
    private(set) var signOuts = 0

    private let limit: Duration

    /// - Parameter limit: how long an attempt may take.
    init(limit: Duration = .seconds(60)) { self.limit = limit }

    private static let busy = BusError.store(
        .busy, "The account is being signed in or checked, or moves to a new key; try again after it.")

    /// The account is signed out, whatever is under way.
    func noteSignOut() { signOuts += 1 }

    /// Ends what is tried for a caller, who has given up.
    func endLatest() { latest?.supersede() }

    /// Tries a backend for a caller, who may give up without a word: the next call ends the attempt, and begins once it
    /// has ended. A move doesn't give way.
    /// - Throws: `Busy` if something else is under way, or a newer call has ended this one.
    func make<T: Sendable>(_ work: @escaping @Sendable () async throws -> T) async throws -> T {
        let former = latest
        if isBusy, former == nil { throw Self.busy }
        let own = Attempt()
        latest = own
        defer {
            if latest === own { latest = nil }
            own.end()
        }
        await former?.giveWay()
        do {
            try own.check()
            let result = try await alone { try await Self.limited(own, limit, work) }
            try own.check()
            return result
        } catch {
            try own.check()
            throw error
        }
    }

    /// Does something while nothing else is tried.
    /// - Throws: `Busy` if something is.
    func alone<T>(_ body: () async throws -> T) async throws -> T {
        if isBusy { throw Self.busy }
        isBusy = true
        defer { isBusy = false }
        return try await body()
    }

    /// Waits for a backend for a minute, and then cancels what it does: a dead network mount never answers, and a server
    /// may answer a byte now and then.
    static func limited<T: Sendable>(_ work: @escaping @Sendable () async throws -> T) async throws -> T {
        try await limited(nil, .seconds(60), work)
    }

    private static func limited<T: Sendable>(
        _ attempt: Attempt?, _ limit: Duration, _ work: @escaping @Sendable () async throws -> T
    ) async throws -> T {
        let race = Race<T>()
        let timer = EventLoop.shared.after(limit) {
            race.end(.failure(RemoteError(.unavailable, "The place did not answer within a minute.")))
            race.work?.cancel()
        }
        defer { timer.cancel() }
        return try await withCheckedThrowingContinuation { continuation in
            race.continuation = continuation
            let task = EventLoop.task {
                do { race.end(.success(try await work())) } catch { race.end(.failure(error)) }
            }
            race.work = task
            attempt?.work = task
        }
    }
}

/// An attempt with a backend, which a newer one may end.
@BusActor
private final class Attempt {
    /// It may be superseded before it has begun.
    var work: Task<Void, Never>? { didSet { if isSuperseded { work?.cancel() } } }
    private var isSuperseded = false
    private var isOver = false
    private var successor: CheckedContinuation<Void, Never>?

    /// Comes to nothing, also where its answer is there already.
    func supersede() {
        isSuperseded = true
        work?.cancel()
    }

    /// Gives way to the next attempt, and returns when this one has ended; what is stuck ends after its minute.
    func giveWay() async {
        supersede()
        if !isOver { await withCheckedContinuation { successor = $0 } }
    }

    func end() {
        isOver = true
        successor?.resume()
    }

    /// Throws if a newer call has ended it.
    func check() throws(BusError) {
        if isSuperseded { throw .store(.busy, "A newer call has ended this one.") }
    }
}

/// Of several ends, the first one counts.
@BusActor
private final class Race<T: Sendable> {
    var continuation: CheckedContinuation<T, any Error>?
    var work: Task<Void, Never>?

    func end(_ result: Result<T, any Error>) {
        continuation?.resume(with: result)
        continuation = nil
    }
}
