// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication
internal import StoreEngine

extension AccountSync {
    /// Looks at the remote and joins what is new.
    /// - Returns: whether there was anything.
    func download(from backend: any RemoteBackend) async throws -> Bool {
        let epoch = database.downloadEpoch
        let cursor = database.account.beginsAnew ? nil : database.account.cursor
        let pull = try await backend.pull(
            after: cursor, as: database.origin, published: database.publicationCount)
        guard isCurrent(backend) else { return false }
        guard pull.account.isNamed(database.account.identifier) else {
            throw RemoteError(
                .reset, "the remote holds another account, or was emptied; say which side is right with Resolve")
        }
        try rename(to: pull.account)
        names.merge(pull.devices) { $1 }
        presentDevices = Set(pull.devices.values.map(\.identifier))
        (problem, isPullComplete) = (nil, false)
        noteProblem(of: pull)
        ownPublication = pull.ownPublication
        if Rule.leaveClones.isOn, case .foreign = pull.ownPublication { try database.leaveOrigin() }
        if !pull.stores.isEmpty && database.account.isDownloaded { setState(.syncing, error: lastError) }

        var joined: Set<String> = []
        var lacking = Lacking()
        var received = false
        for identifier in pull.stores {
            let change = try await pull.change(of: identifier)
            guard isCurrent(backend) else { return received }
            // Of a store that was taken into use meanwhile this may be the news only, and the first to arrive is all.
            guard epoch == database.downloadEpoch else { break }
            switch try join(change, to: identifier) {
            case .notWhole: lacking.isWaiting = true
            case .tooLarge: lacking.tooLarge.insert(identifier)
            case .changed:
                received = true
                joined.insert(identifier)
            case .unchanged: joined.insert(identifier)
            }
        }
        noteProblem(of: pull)
        let result = await pull.finish(joined: joined)
        guard isCurrent(backend) else { return received }
        // A store that was taken into use meanwhile may have been passed over.
        if epoch == database.downloadEpoch {
            try keep(result, lacking)
        } else {
            schedule?.noteHint(monotonicTime())
            isInterrupted = true
        }
        try noteHiddenEntries()
        return received
    }

    /// Keeps the first thing that a pull could not read: some it finds at its look, others as stores are read.
    private func noteProblem(of pull: any RemotePull) {
        if let sentence = pull.problems.first { noteProblem(sentence) }
    }

    private func noteProblem(_ sentence: String) {
        problem = problem ?? RemoteError(.damaged, sentence)
    }

    /// Entries that break the rules are passed on and shown to nobody, so this is the one place that tells of them.
    private func noteHiddenEntries() throws(EngineError) {
        guard problem == nil, let found = try database.hiddenEntries() else { return }
        noteProblem(
            "the store \(found.store) holds entries that break the rules for keys and values (\(found.count)): they are "
                + "passed on, and shown to nobody")
    }

    /// What a pull brought and was not joined.
    struct Lacking {
        /// Something that is still to arrive.
        var isWaiting = false
        /// Stores that would exceed what a store may hold. Waiting does not help: the rest of the account goes on
        /// without them, and they are offered again with every pull.
        var tooLarge: Set<String> = []
    }

    func keep(_ result: PullResult, _ lacking: Lacking) throws {
        let (beginsAnew, isRead) = (database.account.beginsAnew, result.isComplete && !lacking.isWaiting)
        isPullComplete = isRead
        if !isRead {
            problem =
                problem ?? RemoteError(.unavailable, "Parts of the account have not arrived in the remote yet.")
        }
        guard isRead || !beginsAnew else { return }
        // A look that left something out is not one by which a store that comes later may judge who removed what.
        let isComplete = isRead && lacking.tooLarge.isEmpty
        if beginsAnew { try arriveEverywhere(besides: lacking.tooLarge) }
        if result.cursor != database.account.cursor {
            let waiting = isRead ? lacking.tooLarge : Set(try database.storesAwaitingDownload())
            let changes = try database.completeDownload(
                cursor: result.cursor, isComplete: isComplete, besides: waiting)
            tell(changes, .accountChange)
        } else if isComplete {
            database.noteDownload()
        }
    }

    /// Every store of the account has arrived, but for some: those of which the remote has nothing as well.
    func arriveEverywhere(besides lacking: Set<String>) throws {
        let waiting = Set(try database.storesAwaitingDownload()).union(database.loadedStores.map(\.identifier))
        for identifier in waiting.subtracting(lacking).sorted() {
            _ = try join(RemoteChange(state: StoreState(), isComplete: true), to: identifier)
        }
    }

    enum JoinResult {
        case changed, unchanged
        /// It has to be joined another time, when all of it is there.
        case notWhole
        /// It has to be joined another time, when it is smaller.
        case tooLarge
    }

    /// Joins what is new of a store, and tells of it.
    func join(_ change: RemoteChange, to identifier: String) throws -> JoinResult {
        let store = try database.store(identifier, localKeys: localKeys(identifier))
        guard store.isReplicated else { return .unchanged }
        let isArriving = !store.isDownloaded
        // What is written after the arrival is ordinary, and must know all that the account has.
        if isArriving && (!change.isComplete || change.isDelta) { return .notWhole }
        try leaveSharedOrigins(store, change, isArriving: isArriving)
        let plan = Join.plan(
            store, taking: change.states.state(over: store), isFirstDownload: isArriving, isDelta: change.isDelta)
        if !isArriving, plan.changesNothing(in: store.vector) { return .unchanged }
        guard store.canHold(plan) else {
            noteProblem("the store \(identifier) has grown too large to be joined any further")
            if isArriving { try store.noteWaiting() }
            return .tooLarge
        }
        try carryOut(plan, in: store, isArriving: isArriving)
        return .changed
    }

    /// Takes another origin before anything is joined that was said of somebody else's writes under one of this
    /// device's.
    private func leaveSharedOrigins(_ store: Store, _ change: RemoteChange, isArriving: Bool) throws(EngineError) {
        guard Rule.leaveClones.isOn else { return }
        var shared = Join.sharedOrigins(
            database.origin, store, in: change.states.state, writtenIn: isArriving ? 0..<0 : rememberedTimes,
            isDelta: change.isDelta)
        if isArriving { shared.formUnion(Join.sharedOrigins(ofDefaults: store, in: change.states.state)) }
        if try database.leaveOrigins(among: shared) { ownPublication = .foreign }
    }

    /// The milliseconds since 1970 of which this device would have heard of each removal: none if it was away for
    /// longer than tombstones are kept.
    private var rememberedTimes: Range<UInt64> {
        let (now, age) = (database.environment.time() / 1000, Retention.microseconds / 1000)
        let start = now - min(now, age)
        return start..<(database.account.lastPull / 1000 < start ? start : now + 1)
    }

    func carryOut(_ plan: JoinPlan, in store: Store, isArriving: Bool) throws(EngineError) {
        let (hadPreviousValues, wasOverQuota) = (store.hasPreviousValues, store.isOverQuota)
        let change = store.stage(plan, cause: isArriving ? .downloaded : .joined)
        try database.commit()
        if HiddenStore.isHidden(store.identifier) { return noteDevices(in: store) }
        if isArriving || !change.keys.isEmpty {
            let reason: StoreNotice.Reason =
                isArriving ? (hadPreviousValues ? .accountChange : .initialSyncChange) : ownReason(in: store)
            onNotice?(
                StoreNotice(store: store, reason: reason, keys: change.keys, device: soleDevice(change.origins)))
        }
        if store.isOverQuota && !wasOverQuota {
            onNotice?(StoreNotice(store: store, reason: .quotaViolationChange, keys: store.overflow, device: nil))
        }
    }

    /// Why a store changes by what the remote says. Before its values have arrived it says only whose they are.
    func ownReason(in store: Store) -> StoreNotice.Reason { store.isDownloaded ? .serverChange : .accountChange }

    func tell(_ changes: [StoreViewChange], _ reason: StoreNotice.Reason) {
        for change in changes where !change.keys.isEmpty {
            onNotice?(StoreNotice(store: change.store, reason: reason, keys: change.keys, device: nil))
        }
    }
}
