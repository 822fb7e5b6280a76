// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import StoreEngine

extension UserAccount {
    /// Returns about how many bytes of the database the history of all of the user's stores takes.
    func historySize() async throws -> Int {
        try await forEachReplica { database, replica in try database.historySize(ofReplica: replica) }
    }

    /// Removes the history of all of the user's stores.
    /// - Returns: about how many bytes of the database were freed.
    func clearHistory() async throws -> Int {
        try await forEachReplica { database, replica in try database.clearHistory(ofReplica: replica) }
    }

    /// Returns the sum of a piece of work on each replica in the database. Other tasks can run in between.
    private func forEachReplica(_ work: (UserDatabase, Int64) throws -> Int) async throws -> Int {
        let database = database
        var sum = 0
        for replica in try database.replicas() {
            // The database may have been replaced meanwhile.
            guard database === self.database else { break }
            sum += try work(database, replica)
            await Task.yield()
        }
        return sum
    }
}
