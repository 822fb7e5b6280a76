// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import StoreEngine

extension AccountSync {
    /// Uploads what is pending.
    /// - Returns: whether there was anything.
    func upload(to backend: any RemoteBackend) async throws -> Bool {
        guard isCurrent(backend), database.account.isDownloaded, hasSomethingToPublish else { return false }
        setState(.syncing, error: lastError)
        try announceDevice()
        try database.willPublish()
        let publication = try publication()
        let origin = publication.origin
        let push = try await backend.push(publication)
        guard mayUpload(to: backend, as: origin) else { return false }
        // One that was taken out of the sync meanwhile stays in the remote as it was published before.
        let snapshots = try push.stores.map { try database.store($0, localKeys: localKeys($0)) }
            .filter(\.isReplicated).map { $0.snapshot() }
        // What leaves the device is on its disk before: a dot that was published must never be used again.
        if Rule.syncFirst.isOn { try await database.synchronize() }
        for snapshot in snapshots {
            guard mayUpload(to: backend, as: origin) else { return false }
            try await push.upload(snapshot)
        }
        guard mayUpload(to: backend, as: origin) else { return false }
        try await push.finish()
        guard isCurrent(backend) else { return false }
        let published = try snapshots.map { snapshot in
            let sequence =
                Rule.exactMarks.isOn ? snapshot.sequence : try database.store(snapshot.identifier).snapshot().sequence
            return (snapshot.identifier, sequence)
        }
        try database.markPublished(Dictionary(uniqueKeysWithValues: published), under: origin)
        ownPublication = .asPublished
        return true
    }

    /// Whether an upload may go on that began under an origin. Where the device has taken another one, as when a store was
    /// forgotten, the next pass uploads.
    private func mayUpload(to backend: any RemoteBackend, as origin: Origin) -> Bool {
        guard isCurrent(backend) else { return false }
        if origin == database.origin { return true }
        isInterrupted = true
        return false
    }

    /// Has the remote tidied up, once a day or when a device was forgotten. It is tried again the next day if it fails.
    func collectGarbage(_ backend: any RemoteBackend) async throws(EngineError) {
        // What a device that was forgotten left may go once it is known that this device has published all of it.
        guard isCurrent(backend), database.account.isDownloaded,
            (collectsGarbage && !hasPendingChanges) || isDayAway(from: database.lastGarbageCollection)
        else { return }
        try database.noteGarbageCollection()
        collectsGarbage = false
        let request = GarbageCollection(
            account: database.account.identifier, origin: database.origin, forgottenOrigins: try forgottenOrigins(),
            time: database.environment.time())
        // Nothing depends on it, and what keeps it from being done is said by the passes.
        try? await backend.collectGarbage(request)
    }

    func publication() throws(EngineError) -> Publication {
        Publication(
            account: database.account.identifier, origin: database.origin,
            formerOrigins: try database.formerOrigins(), counts: try database.publicationCounts(), device: device,
            stores: try database.accountStores(), time: database.environment.time())
    }

    var hasSomethingToPublish: Bool {
        hasPendingChanges || needsRepublication || isPublicationDue || !Rule.noEcho.isOn && isPublicationOld
    }

    /// Something was joined since.
    private var isPublicationOld: Bool {
        (try? database.accountStores().contains { $0.sequence > $0.published }) ?? false
    }

    /// A day has passed since the last upload, or there was none: what this device has received since would be lost
    /// with the others, and they would not know that it is still there.
    var isPublicationDue: Bool {
        Rule.dailyHead.isOn && database.account.isDownloaded && isDayAway(from: database.account.lastPush)
    }

    /// Whether a time is a day from now, in the past or, by a clock that was wrong, in the future.
    func isDayAway(from time: UInt64) -> Bool {
        let now = database.environment.time()
        return max(now, time) - min(now, time) >= Self.day
    }

    private static let day: UInt64 = 86_400_000_000

    /// What this device published is not there any more, or what it wrote goes under a new name.
    var needsRepublication: Bool {
        if case .asPublished = ownPublication { false } else { true }
    }
}
