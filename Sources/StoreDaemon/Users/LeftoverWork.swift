// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import StoreEngine

/// Removes what replicas that are gone have left in a user's database, so that others get their turn meanwhile.
@BusActor
final class LeftoverWork {
    private let owner: Slices.Owner
    private var work: Task<Void, Never>?

    init(of uid: UInt32) { owner = .user(uid) }

    /// Begins with what is left in a database now, and follows what is left later.
    func follow(_ database: UserDatabase) {
        stop()
        // The database has the closure, and a weak reference would slow down every use of it.
        database.leftovers.onSome = { [weak self, unowned database] in
            if let self, work == nil { begin(database) }
        }
        if database.leftovers.exist { begin(database) }
    }

    /// Ends the work. What is left stays until the database is opened again.
    func stop() {
        work?.cancel()
        work = nil
    }

    private func begin(_ database: UserDatabase) {
        work = EventLoop.task { [weak self, owner] in
            let slices = Slices(of: owner)
            while !Task.isCancelled, let isMore = Self.step(database) {
                // An error, such as of a disk that is too slow, may pass.
                if isMore { await slices.pauseIfDue() } else { await EventLoop.pause(.seconds(10)) }
            }
            if !Task.isCancelled { self?.work = nil }
        }
    }

    /// - Returns: whether something was removed, and more may be left; false if nothing could be; `nil` if nothing is left.
    private static func step(_ database: UserDatabase) -> Bool? {
        do { return try database.leftovers.removeSome() ? true : nil } catch {
            return database.isAbandoned ? nil : false
        }
    }
}
