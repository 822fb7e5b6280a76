// SPDX-License-Identifier: Apache-2.0

// What a sync cycle does to the database. SyncCycle decides what it does, and in which order. AccountSync decides when,
// and reports on it.

internal import PropertyList
package import Replication
package import StoreEngine

/// One user's database, as the sync cycles with a remote use it.
///
/// Not Sendable: it lives with the database in its owner's isolation. Only the backend works elsewhere.
package final class AccountReplica {
    let database: UserDatabase
    let devices: DeviceList
    package var cycle = SyncCycle()
    /// The backend of the account; `nil` if it has none.
    var backend: (any RemoteBackend)? { didSet { identifiers = [] } }
    /// Whether the user has paused sync.
    var isPaused = false
    /// How many callers want what was only joined to be published as well, because they are about to remove it.
    var verifications = 0
    /// The account's identifiers, as the last pull found them; empty before the first pull with this backend.
    private(set) var identifiers: Set<String> = []
    /// What the account asks the program that it is part of, and tells it.
    var host = AccountHost()
    /// Called when a cycle begins to download or upload values.
    var onTransfer: (() -> Void)?
    private let monotonicTime: () -> UInt64
    private var work: UInt64 = 0

    init(_ database: UserDatabase, own device: RemoteDevice, monotonicTime: @escaping () -> UInt64) {
        (self.database, self.monotonicTime) = (database, monotonicTime)
        devices = DeviceList(database, own: device)
    }

    /// Whether changes are pending that may be uploaded. If that can't be read, the upload reports the error.
    var hasPendingChanges: Bool { (try? database.summaries.hasUploads()) ?? true }

    /// Returns whether the account still has the backend with which a cycle began.
    func isWith(_ backend: any RemoteBackend) -> Bool {
        self.backend.map { $0 === backend } ?? false
    }

    // MARK: The account's identity

    /// Returns the account that a remote really shows. Anybody who can write to a remote can put a marker without a key
    /// there, under any name. So an account without a key never has the name of an encrypted one that this device
    /// knows.
    /// - Throws: `RemoteError` if it has no other name.
    func genuine(_ remote: RemoteAccount) throws -> RemoteAccount {
        if remote.isEncrypted || !Rule.neverPlain.isOn { return remote }
        let names = remote.aliases.union([remote.identifier])
        let encrypted = try database.names.encrypted(among: names).union(names.intersection(host.keyNames()))
        if encrypted.isEmpty { return remote }
        guard let rest = remote.without(encrypted) else { throw RemoteError.unencrypted }
        return rest
    }

    /// Switches to an account.
    func enter(_ found: RemoteAccount, bringsValues: Bool) throws {
        let remote = try genuine(found)
        let (current, formerNames) = (database.account.identifier, try formerNames(of: remote))
        if database.hasAccount, remote.isNamed(current) || formerNames.contains(current) {
            try rename(to: remote, formerly: formerNames)
        } else {
            let changes = try database.enter(account: remote.identifier, bringingValues: bringsValues)
            // While the new account's values have not arrived, most of what was shown stays.
            tell(changes, .accountChange)
        }
        // If this fails, the next pull does it.
        if remote.isEncrypted { try? database.names.noteEncrypted() }
    }

    /// Continues under the smallest of the identifiers that devices have given the account, and joins what this device
    /// has under the others.
    private func rename(to remote: RemoteAccount, formerly formerNames: Set<String>) throws(EngineError) {
        let before = database.account.identifier
        let others = remote.aliases.union(formerNames)
        if remote.identifier == before, others.isEmpty { return }
        // The upload under that identifier may never have been read by another device.
        if formerNames.contains(before) { try database.progress.forgetPublication() }
        try joinOthers(named: others.union([remote.identifier]))
        for change in try database.rename(accountTo: remote.identifier, aliases: others) {
            tell([change], ownReason(in: change.store))
        }
        if remote.identifier != before { host.onRename?() }
    }

    /// Returns the former identifiers under which this device may still have the account: those that the account lists,
    /// those that came after them only on this device, and those in whose place it was found. A device that moves the
    /// account gives it an identifier that is abandoned if another device's move counts. If two devices create the
    /// account at the same time, the one that encrypts it may not have seen the other's identifier.
    private func formerNames(of remote: RemoteAccount) throws(EngineError) -> Set<String> {
        var names = remote.formerNames
        if Rule.ownNames.isOn { names.formUnion(try database.names.accounts(formerly: remote.formerNames)) }
        if Rule.plainSuccessor.isOn {
            names.formUnion(try database.names.accounts(before: remote.formerNames.union([remote.identifier])))
        }
        // No account comes before a name that it has left, whatever somebody with that name's key says.
        return names.subtracting([remote.identifier]).subtracting(
            try database.names.accounts(formerly: [remote.identifier]))
    }

    /// Joins what this device has of the account under its other identifiers, because it is the state of one account.
    ///
    /// The remote may have lost all of it, so everything is published again.
    private func joinOthers(named names: Set<String>) throws(EngineError) {
        let states = try database.statesOfOthers(named: names)
        if states.isEmpty { return }
        try database.progress.forgetPublication()
        var joined: [String: JoinedStates] = [:]
        for (identifier, state) in states { joined[identifier, default: JoinedStates()].join(state) }
        for (identifier, states) in joined.sorted(by: { $0.key < $1.key }) {
            let store = try database.store(identifier, localKeys: host.localKeys(identifier))
            // Of an excluded store as well: what is pending there follows what it has replaced.
            guard !store.isForgotten, !store.isLayer else { continue }
            let plan = Join.plan(store, taking: states.state(over: store))
            guard store.canHold(plan) else {
                throw .storage("the store \(identifier) would be too large with what this device has of it twice")
            }
            if !plan.changesNothing(in: store.vector) { try carryOut(plan, in: store, isArriving: false) }
        }
    }
}

extension RemoteError {
    static let unencrypted = RemoteError(
        .unencrypted,
        "The account that is here is not encrypted, although this device knows it as encrypted. Somebody who can write "
            + "to the remote has replaced it.")
}

extension AccountReplica: BackendUser {
    package var facts: SyncCycle.Facts {
        SyncCycle.Facts(
            now: monotonicTime(), time: database.environment.time(), traits: traits,
            isDownloaded: database.account.isDownloaded,
            isPending: hasPendingChanges || (verifications > 0 || !Rule.noEcho.isOn) && isPublicationOld,
            lastPush: database.account.lastPush, lastGarbageCollection: database.lastGarbageCollection)
    }

    private var traits: BackendTraits {
        backend?.traits ?? BackendTraits(coalescing: .zero, givesHints: false)
    }

    /// Whether something was joined since the last publication.
    private var isPublicationOld: Bool {
        (try? database.progress.publishedStores().contains { $0.sequence > $0.published }) ?? false
    }

    package var origin: Origin { database.origin }
    package var downloadEpoch: Int { database.downloadEpoch }
    package var cursor: [UInt8]? { database.account.beginsAnew ? nil : database.account.cursor }
    package var publicationCount: UInt64 { database.origins.publicationCount }

    package func giveWay() async {
        let done = work
        work = 0
        if done > 0 { await host.onWork?(done) }
    }

    /// Does a piece of work that may be long, and counts its time.
    private func counted<Result>(_ body: () throws -> Result) rethrows -> Result {
        let start = monotonicTime()
        defer { work += monotonicTime() - start }
        return try body()
    }

    package func leave(_ shared: Set<Origin>) throws -> Bool { try database.leaveOrigins(among: shared) }

    package func isCurrent(_ backend: any RemoteBackend) -> Bool { isWith(backend) && !isPaused }

    // MARK: Download

    package func note(_ pull: any RemotePull) throws {
        let found: RemoteAccount?
        do {
            // To examine a name reads the database and the keys' files, and the names rarely change between two pulls.
            let areKnown = pull.account.aliases.union([pull.account.identifier]).isSubset(of: identifiers)
            found = areKnown ? pull.account : try genuine(pull.account)
        } catch let error as RemoteError where error.code == .unencrypted {
            found = nil
        }
        guard let remote = found, remote.isNamed(database.account.identifier) else {
            throw RemoteError(
                .reset, "The remote holds another account, or was emptied.", reason: .accountReplaced)
        }
        try rename(to: remote, formerly: formerNames(of: remote))
        if remote.isEncrypted { try database.names.noteEncrypted() }
        identifiers = remote.aliases.union([remote.identifier])
        devices.note(pull.devices)
        if !pull.stores.isEmpty && database.account.isDownloaded { onTransfer?() }
    }

    package func replica(of store: String) throws -> (Store, isArriving: Bool)? {
        let store = try counted { try database.store(store, localKeys: host.localKeys(store)) }
        return store.isReplicated ? (store, !store.isDownloaded) : nil
    }

    /// A tombstone is kept for a time after its own stamp, which is later than that of what it removes. So it doesn't
    /// matter for how long the device was away. Nor are times to come left out: its clock may have been behind.
    package var rememberedTimes: Range<UInt64> {
        let (now, age) = (database.environment.time() / 1000, Retention.microseconds / 1000)
        return (now - min(now, age))..<UInt64.max
    }

    package func carryOut(
        _ plan: JoinPlan, in store: Store, of identifier: String, isArriving: Bool
    ) throws -> Bool {
        if let problem = obstacle(plan, in: store, of: identifier) {
            cycle.noteProblem(problem)
            if isArriving { try store.noteWaiting() }
            return false
        }
        try counted { try carryOut(plan, in: store, isArriving: isArriving) }
        return true
    }

    /// Returns why a store can't take in what a plan has for it; `nil` if it can.
    private func obstacle(_ plan: JoinPlan, in store: Store, of identifier: String) -> RemoteError? {
        guard store.canHold(plan) else {
            return RemoteError(
                .damaged,
                "The store \(identifier) has grown too large to be joined any further. Remove keys that are no longer "
                    + "needed.")
        }
        return counted {
            do throws(RemoteError) { try host.makeRoom(store, plan) } catch { return error }
            return nil
        }
    }

    private func carryOut(_ plan: JoinPlan, in store: Store, isArriving: Bool) throws(EngineError) {
        let (hadPreviousValues, wasOverQuota) = (store.hasPreviousValues, store.isOverQuota)
        let change = store.stage(plan, cause: isArriving ? .downloaded : .joined)
        try database.commit()
        if HiddenStore.isHidden(store.identifier) { return devices.noteEntries(in: store) }
        if isArriving || !change.keys.isEmpty {
            let reason: StoreNotice.Reason =
                isArriving ? (hadPreviousValues ? .accountChange : .initialSyncChange) : ownReason(in: store)
            host.onNotice?(
                StoreNotice(
                    store: store, reason: reason, keys: change.keys,
                    device: devices.soleIdentifier(of: change.origins)))
        }
        if store.isOverQuota && !wasOverQuota {
            host.onNotice?(StoreNotice(store: store, reason: .quotaViolationChange, keys: store.overflow, device: nil))
        }
    }

    package func hasForgotten(_ origins: Set<Origin>) throws -> Bool {
        try devices.forgottenOrigins().isSuperset(of: origins)
    }

    package func keep(_ result: PullResult, isRead: Bool, tooLarge: Set<String>) throws {
        // A pull that left something out can't tell a store that arrives later what was removed.
        let isComplete = isRead && tooLarge.isEmpty
        if database.account.beginsAnew { try arriveEverywhere(besides: tooLarge) }
        if result.cursor != database.account.cursor {
            let waiting = isRead ? tooLarge : Set(try database.progress.storesAwaitingDownload())
            let changes = try database.progress.completeDownload(
                cursor: result.cursor, isComplete: isComplete, besides: waiting)
            tell(changes, .accountChange)
        } else if isComplete {
            database.progress.noteDownload()
        }
        try noteHiddenEntries()
    }

    /// Lets all stores of the account arrive, except those too large. The remote has nothing of these stores.
    private func arriveEverywhere(besides tooLarge: Set<String>) throws {
        let waiting = Set(try database.progress.storesAwaitingDownload()).union(database.loadedStores.map(\.identifier))
        for identifier in waiting.subtracting(tooLarge).sorted() {
            _ = try join(RemoteChange(state: StoreState(), isComplete: true), to: identifier)
        }
    }

    private func noteProblem(_ sentence: String) { cycle.noteProblem(RemoteError(.damaged, sentence)) }

    /// Reports entries that break the rules. They are passed on and never shown, so this is the only place that can.
    private func noteHiddenEntries() throws(EngineError) {
        guard cycle.problem == nil, let found = try database.progress.hiddenEntries() else { return }
        noteProblem(
            "The store \(found.store) holds entries that break the rules for keys and values (\(found.count)). They "
                + "are kept and passed on to other devices, but hidden from apps.")
    }

    /// The reason of a change that comes from the remote. Until a store's values arrive, only their account can change.
    private func ownReason(in store: Store) -> StoreNotice.Reason {
        store.isDownloaded ? .serverChange : .accountChange
    }

    func tell(_ changes: [StoreViewChange], _ reason: StoreNotice.Reason) {
        for change in changes where !change.keys.isEmpty {
            host.onNotice?(StoreNotice(store: change.store, reason: reason, keys: change.keys, device: nil))
        }
    }

    // MARK: Upload

    package func publication() throws -> Publication {
        onTransfer?()
        try devices.announceOwn()
        try database.origins.willPublish()
        return Publication(
            account: database.account.identifier, origin: database.origin,
            formerOrigins: try database.origins.former(), counts: try database.origins.publicationCounts(),
            device: devices.own, stores: try database.progress.publishedStores(), time: database.environment.time())
    }

    /// A store that has left the sync meanwhile stays in the remote as it was last published.
    package func snapshot(of store: String) throws -> StoreSnapshot? {
        try replica(of: store)?.0.snapshot()
    }

    package func synchronize() async throws { try await database.synchronize() }

    package func markPublished(_ sequences: [String: UInt64], under origin: Origin) throws {
        var sequences = sequences
        if !Rule.exactMarks.isOn {
            for store in sequences.keys { sequences[store] = try database.store(store).snapshot().sequence }
        }
        try database.progress.markPublished(sequences, under: origin)
    }

    package func garbageCollection() throws -> GarbageCollection {
        try database.noteGarbageCollection()
        return GarbageCollection(
            account: database.account.identifier, origin: database.origin,
            forgottenOrigins: try devices.forgottenOrigins(), time: database.environment.time())
    }
}
