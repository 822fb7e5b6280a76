// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import StoreEngine

extension UserAccount {
    /// What the history of all of the user's stores takes, about, in bytes of the database.
    func historySize() async throws -> Int {
        try await forEachReplica { database, replica in try database.historySize(ofReplica: replica) }
    }

    /// Removes the history of all of the user's stores.
    /// - Returns: what it took, about, in bytes of the database.
    func clearHistory() async throws -> Int {
        try await forEachReplica { database, replica in try database.clearHistory(ofReplica: replica) }
    }

    /// Adds up what a piece of work on each part of the database comes to. Others have their turn in between.
    private func forEachReplica(_ work: (UserDatabase, Int64) throws -> Int) async throws -> Int {
        let database = database
        var sum = 0
        for replica in try database.replicas() {
            // Another database may be in its place by now.
            guard database === self.database else { break }
            sum += try work(database, replica)
            await Task.yield()
        }
        return sum
    }
}
