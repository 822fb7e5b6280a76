// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus
internal import StoreEngine

/// The budgets of all users.
@BusActor
final class UserShares {
    private let service: ServiceContext
    private let pool = SharePool(within: .shared)
    private var shares: [Key: UserShare] = [:]
    /// Whose waiting calls go on.
    var turns: Turns { pool.turns }

    init(in service: ServiceContext) { self.service = service }

    /// The owner of a budget: a user, or a range of subordinate ids together.
    enum Key: Hashable {
        case user(UInt32)
        case subordinates(first: UInt32)
    }

    /// Returns a budget. A new one ends with its first client or, if it has none, after its rest.
    func share(of key: Key) -> UserShare {
        if let share = shares[key] { return share }
        let share = UserShare(service.configuration.bounds, of: pool)
        share.whenUnused = { [unowned self] in shares[key] = nil }
        shares[key] = share
        return share
    }

    /// Whether a client of the user holds something.
    func isPresent(_ uid: UInt32) -> Bool { shares[.user(uid)].map { $0.presentClients > 0 } ?? false }

    /// Applies changed bounds. What exceeds them already stays until it ends by itself.
    func apply(_ bounds: UserBounds) {
        for share in shares.values { share.bounds = bounds }
    }

    /// Ends the rests of all users, because the service ends, and what waits is to be answered before.
    func endRests() {
        pool.isEnding = true
        for share in shares.values { share.rest.finish() }
    }

    // MARK: Time

    /// The time in microseconds that isn't counted for another user's call.
    private static let noticeable: UInt64 = 1000

    /// Counts the time that the loop spent with a user's data, unless a call of that user has it: what follows a wait,
    /// commits, and sync. Pieces of those that others hardly notice don't count.
    func note(_ time: WorkTime, ofDataOf uid: UInt32) {
        let taken = time.taken(ifAtLeast: Self.noticeable)
        if taken == 0 || service.connection.leaveOut(taken, for: uid) { return }
        if taken >= LongCallPause.allowance { share(of: .user(uid)).rest.note(taken) }
    }

    /// Makes an observer that counts the time of all work with a user's database.
    func observer(ofDataOf uid: UInt32) -> WorkObserver {
        var began = WorkTime()
        return WorkObserver(begins: { began = WorkTime() }, ends: { [unowned self] in note(began, ofDataOf: uid) })
    }
}
