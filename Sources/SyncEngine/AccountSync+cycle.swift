// SPDX-License-Identifier: Apache-2.0

// What a cycle does to the database.

internal import PropertyList
package import Replication
package import StoreEngine

extension AccountSync: BackendUser {
    package var facts: SyncCycle.Facts {
        SyncCycle.Facts(
            now: monotonicTime(), time: database.environment.time(), traits: traits,
            isDownloaded: database.account.isDownloaded,
            isPending: hasPendingChanges || !Rule.noEcho.isOn && isPublicationOld,
            lastPush: database.account.lastPush, lastGarbageCollection: database.lastGarbageCollection)
    }

    private var traits: BackendTraits {
        backend?.traits ?? BackendTraits(coalescing: .zero, tellsOfChanges: false)
    }

    /// Something was joined since.
    private var isPublicationOld: Bool {
        (try? database.accountStores().contains { $0.sequence > $0.published }) ?? false
    }

    package var origin: Origin { database.origin }
    package var downloadEpoch: Int { database.downloadEpoch }
    package var cursor: [UInt8]? { database.account.beginsAnew ? nil : database.account.cursor }
    package var publicationCount: UInt64 { database.origins.publicationCount }

    package func leave(_ shared: Set<Origin>) throws -> Bool { try database.leaveOrigins(among: shared) }

    // MARK: Download

    package func note(_ pull: any RemotePull) throws {
        guard pull.account.isNamed(database.account.identifier) else {
            throw RemoteError(
                .reset, "The remote holds another account, or was emptied; say which side is right with Resolve.")
        }
        try rename(to: pull.account)
        identifiers = pull.account.aliases.union([pull.account.identifier])
        devices.note(pull.devices)
        if !pull.stores.isEmpty && database.account.isDownloaded { setState(.syncing, error: lastError) }
    }

    package func replica(of store: String) throws -> (Store, isArriving: Bool)? {
        let store = try database.store(store, localKeys: localKeys(store))
        return store.isReplicated ? (store, !store.isDownloaded) : nil
    }

    /// None if it was away for longer than tombstones are kept.
    package var rememberedTimes: Range<UInt64> {
        let (now, age) = (database.environment.time() / 1000, Retention.microseconds / 1000)
        let start = now - min(now, age)
        return start..<(database.account.lastPull / 1000 < start ? start : now + 1)
    }

    package func carryOut(
        _ plan: JoinPlan, in store: Store, of identifier: String, isArriving: Bool
    ) throws -> Bool {
        guard store.canHold(plan) else {
            noteProblem(
                "The store \(identifier) has grown too large to be joined any further. Remove keys that are no longer "
                    + "needed.")
            if isArriving { try store.noteWaiting() }
            return false
        }
        try carryOut(plan, in: store, isArriving: isArriving)
        return true
    }

    func carryOut(_ plan: JoinPlan, in store: Store, isArriving: Bool) throws(EngineError) {
        let (hadPreviousValues, wasOverQuota) = (store.hasPreviousValues, store.isOverQuota)
        let change = store.stage(plan, cause: isArriving ? .downloaded : .joined)
        try database.commit()
        if HiddenStore.isHidden(store.identifier) { return devices.noteEntries(in: store) }
        if isArriving || !change.keys.isEmpty {
            let reason: StoreNotice.Reason =
                isArriving ? (hadPreviousValues ? .accountChange : .initialSyncChange) : ownReason(in: store)
            onNotice?(
                StoreNotice(
                    store: store, reason: reason, keys: change.keys,
                    device: devices.soleIdentifier(of: change.origins)))
        }
        if store.isOverQuota && !wasOverQuota {
            onNotice?(StoreNotice(store: store, reason: .quotaViolationChange, keys: store.overflow, device: nil))
        }
    }

    package func keep(_ result: PullResult, isRead: Bool, tooLarge: Set<String>) throws {
        // A pull that left something out does not tell a store that arrives later what was removed.
        let isComplete = isRead && tooLarge.isEmpty
        if database.account.beginsAnew { try arriveEverywhere(besides: tooLarge) }
        if result.cursor != database.account.cursor {
            let waiting = isRead ? tooLarge : Set(try database.storesAwaitingDownload())
            let changes = try database.completeDownload(
                cursor: result.cursor, isComplete: isComplete, besides: waiting)
            tell(changes, .accountChange)
        } else if isComplete {
            database.noteDownload()
        }
        try noteHiddenEntries()
    }

    /// Every store of the account has arrived, but for some: those of which the remote has nothing as well.
    private func arriveEverywhere(besides tooLarge: Set<String>) throws {
        let waiting = Set(try database.storesAwaitingDownload()).union(database.loadedStores.map(\.identifier))
        for identifier in waiting.subtracting(tooLarge).sorted() {
            _ = try join(RemoteChange(state: StoreState(), isComplete: true), to: identifier)
        }
    }

    private func noteProblem(_ sentence: String) { cycle.noteProblem(RemoteError(.damaged, sentence)) }

    /// Entries that break the rules are passed on and never shown, so this is the one place that tells of them.
    private func noteHiddenEntries() throws(EngineError) {
        guard cycle.problem == nil, let found = try database.hiddenEntries() else { return }
        noteProblem(
            "The store \(found.store) holds entries that break the rules for keys and values (\(found.count)): they are "
                + "passed on, and no app is shown them.")
    }

    /// Why a store changes by what the remote says. Before its values have arrived it says only whose they are.
    func ownReason(in store: Store) -> StoreNotice.Reason { store.isDownloaded ? .serverChange : .accountChange }

    func tell(_ changes: [StoreViewChange], _ reason: StoreNotice.Reason) {
        for change in changes where !change.keys.isEmpty {
            onNotice?(StoreNotice(store: change.store, reason: reason, keys: change.keys, device: nil))
        }
    }

    // MARK: Upload

    package func publication() throws -> Publication {
        setState(.syncing, error: lastError)
        try devices.announceOwn()
        try database.origins.willPublish()
        return Publication(
            account: database.account.identifier, origin: database.origin,
            formerOrigins: try database.origins.former(), counts: try database.origins.publicationCounts(),
            device: devices.own, stores: try database.accountStores(), time: database.environment.time())
    }

    /// A store that was taken out of the sync meanwhile stays in the remote as it was published before.
    package func snapshots(of stores: [String]) throws -> [StoreSnapshot] {
        try stores.compactMap { try replica(of: $0)?.0.snapshot() }
    }

    package func synchronize() async throws { try await database.synchronize() }

    package func markPublished(_ snapshots: [StoreSnapshot], under origin: Origin) throws {
        let published = try snapshots.map { snapshot in
            let sequence =
                Rule.exactMarks.isOn ? snapshot.sequence : try database.store(snapshot.identifier).snapshot().sequence
            return (snapshot.identifier, sequence)
        }
        try database.markPublished(Dictionary(uniqueKeysWithValues: published), under: origin)
    }

    package func garbageCollection() throws -> GarbageCollection {
        try database.noteGarbageCollection()
        return GarbageCollection(
            account: database.account.identifier, origin: database.origin,
            forgottenOrigins: try devices.forgottenOrigins(), time: database.environment.time())
    }
}
