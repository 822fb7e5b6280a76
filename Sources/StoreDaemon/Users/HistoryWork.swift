// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import StoreEngine
internal import SyncEngine

/// Counts and removes a user's history, which takes as long as there is much of it.
///
/// There is one pass over the history at a time, whose result is shared by all who ask meanwhile.
@BusActor
final class HistoryWork {
    /// What a pass does.
    enum Kind {
        case counting, removing
    }

    private typealias Pass = Task<Result<Int, any Error>, Never>
    private var underWay: [Kind: Pass] = [:]
    private let queue = TurnQueue()
    private var waiting = 0

    /// Returns about how many bytes of the database the history of all of the user's stores takes or, if it was removed,
    /// took.
    func bytes(_ kind: Kind, of account: UserAccount) async throws -> Int {
        guard waiting < CycleWaiters.most else { throw BusError.limitsExceeded(CycleWaiters.refusal) }
        waiting += 1
        defer { waiting -= 1 }
        let pass = underWay[kind] ?? begin(kind, account)
        return try await pass.value.get()
    }

    private func begin(_ kind: Kind, _ account: UserAccount) -> Pass {
        let pass = EventLoop.task { [self] () -> Result<Int, any Error> in
            defer { underWay[kind] = nil }
            do {
                return .success(try await queue.inTurn { [self] in try await run(kind, account) })
            } catch { return .failure(error) }
        }
        underWay[kind] = pass
        return pass
    }

    private func run(_ kind: Kind, _ account: UserAccount) async throws -> Int {
        let database = account.database
        var pass = try HistoryPass(of: database, removing: kind == .removing)
        let slices = Slices(of: .user(account.uid))
        // The database may be replaced meanwhile.
        while account.database === database, try pass.step(in: database) { await slices.pauseIfDue() }
        return pass.bytes
    }
}

/// Gives others the thread between the slices of a long piece of work: several times as long as a slice takes.
@BusActor
final class Slices {
    /// The one who causes work.
    enum Owner: Hashable {
        case user(UInt32)
        case service
    }

    private let owner: Owner
    private var began = EventLoop.processorTime
    /// The number of pieces of work under way.
    private static var counts: [Owner: Int] = [:]

    /// How long a slice is, in microseconds.
    nonisolated static let length: UInt64 = 2000

    init(of owner: Owner) {
        self.owner = owner
        Self.counts[owner, default: 0] += 1
    }

    isolated deinit {
        let rest = Self.counts[owner, default: 1] - 1
        Self.counts[owner] = rest == 0 ? nil : rest
    }

    /// Pauses if the slice is over.
    func pauseIfDue() async {
        let taken = EventLoop.processorTime - began
        guard taken >= Self.length else { return }
        await EventLoop.pause(.microseconds(pause(after: Int64(taken))))
        began = EventLoop.processorTime
    }

    /// Returns how long the pause after a slice is, in microseconds. The more work is under way, the longer, so that all
    /// of it together leaves most of the time to others. One user's pieces delay each other, and other users' only as much
    /// as one piece would.
    func pause(after taken: Int64) -> Int64 { 3 * taken * Int64(Self.counts.count * Self.counts[owner, default: 1]) }
}
