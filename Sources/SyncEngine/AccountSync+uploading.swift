// SPDX-License-Identifier: Apache-2.0

internal import StoreEngine

extension AccountSync {
    /// Uploads what is pending.
    /// - Returns: whether there was anything.
    func upload(to backend: any RemoteBackend) async throws -> Bool {
        guard isCurrent(backend), database.account.isDownloaded, hasPendingChanges || needsRepublication else {
            return false
        }
        setState(.syncing, error: lastError)
        try database.willPublish()
        let push = try await backend.push(publication())
        guard isCurrent(backend) else { return false }
        let origin = database.origin
        let snapshots = try push.stores.map { try database.store($0, localKeys: localKeys($0)).snapshot() }
        // What leaves the device is on its disk before: a dot that was published must never be used again.
        try await database.synchronize()
        for snapshot in snapshots {
            guard isCurrent(backend), origin == database.origin else { return false }
            try await push.upload(snapshot)
        }
        guard isCurrent(backend), origin == database.origin else { return false }
        try await push.finish()
        guard isCurrent(backend) else { return false }
        let published = snapshots.map { ($0.identifier, $0.sequence) }
        try database.markPublished(Dictionary(uniqueKeysWithValues: published), under: origin)
        ownPublication = .asPublished
        lastPush = database.environment.time()
        return true
    }

    func publication() throws(EngineError) -> Publication {
        Publication(
            account: database.account.identifier, origin: database.origin,
            formerOrigins: try database.formerOrigins(), device: device, stores: try database.accountStores(),
            time: database.environment.time())
    }

    /// What this device published is not there any more, or what it wrote goes under a new name.
    var needsRepublication: Bool {
        if case .asPublished = ownPublication { return false }
        return database.hasPublished
    }
}
