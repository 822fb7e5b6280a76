// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import StoreEngine

/// Removes what replicas that are gone have left in a user's database, so that others get their turn meanwhile.
@BusActor
final class LeftoverWork {
    private var work: Task<Void, Never>?

    /// Begins with what is left in a database now, and follows what is left later.
    func follow(_ database: UserDatabase) {
        work?.cancel()
        work = nil
        database.onLeftovers = { [weak self, weak database] in
            if let self, let database, work == nil { begin(database) }
        }
        if database.hasLeftovers { begin(database) }
    }

    private func begin(_ database: UserDatabase) {
        work = EventLoop.task { [weak self, weak database] in
            let slices = Slices()
            while !Task.isCancelled, let isMore = Self.step(database) {
                // An error, such as of a disk that is too slow, may pass.
                if isMore { await slices.pauseIfDue() } else { await EventLoop.pause(.seconds(10)) }
            }
            if !Task.isCancelled { self?.work = nil }
        }
    }

    /// - Returns: whether something was removed, and more may be left; false if nothing could be; `nil` if nothing is left.
    private static func step(_ database: UserDatabase?) -> Bool? {
        guard let database else { return nil }
        do { return try database.removeLeftovers() ? true : nil } catch { return database.isAbandoned ? nil : false }
    }
}
