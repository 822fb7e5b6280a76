// SPDX-License-Identifier: Apache-2.0

public import PropertyList
public import Replication
internal import SeededRandom

/// A device without a disk, deterministic for a seed. It runs the service's sync cycles with a backend, but only when
/// it is told to, and publishes only what was written or has gone missing.
public final class BackendDevice {
    /// The states of its stores, by the stores' identifiers.
    public private(set) var stores: [String: StoreState] = [:]
    /// The origin under which the device writes.
    public private(set) var origin: Origin
    /// Microseconds since 1970, by the device's clock.
    public var time: UInt64 = 1_700_000_000_000_000
    /// The account that the device has signed in to; empty before.
    public private(set) var account = ""
    /// What the last pull found under the device's origin.
    public private(set) var ownPublication = OwnPublication.asPublished
    /// The problems of the last pull.
    public var problems: [String] { lastPull?.problems ?? [] }
    package var cycle = SyncCycle()

    /// The device's name.
    public let name: String
    /// The backend in use. A restarted device has a new one.
    public var backend: any RemoteBackend
    package private(set) var cursor: [UInt8]?
    private var lastPull: (any RemotePull)?
    private var random: SplitMix
    private var formerOrigins: [Origin] = []
    private var counts: [Origin: UInt64] = [:]
    private var lastN: [String: UInt64] = [:]
    private var sequences: [String: UInt64] = [:]
    private var published: [String: UInt64] = [:]
    /// The sequences that the present push uploads.
    private var uploading: [String: UInt64] = [:]
    private var pending: Set<String> = []

    /// Makes a device without any data.
    public init(_ name: String, seed: UInt64, backend: any RemoteBackend) {
        (self.name, self.backend, random) = (name, backend, SplitMix(seed: seed))
        origin = Origin(bits: 0)
        origin = Origin(bits: nextRandom())
    }

    /// Returns the next number of the device's generator.
    public func nextRandom() -> UInt64 { random.next() }

    // MARK: What a user does

    /// Signs in.
    /// - Throws: what the backend's `open` throws.
    public func signIn(creating: Bool) async throws(RemoteError) {
        account = try await backend.open(creatingAccount: creating).identifier
    }

    /// Writes a value; `nil` removes it. Nothing is sent.
    public func set(_ store: String, _ key: String, _ value: Value?) {
        var state = stores[store] ?? StoreState()
        let key = Key(unchecked: key)
        time += 1_000_000
        let stamp = Stamp(
            after: state.entries[key]?.stamp, wall: time / 1000, origin: origin, isProvisional: false)
        put(stamp, value?.encoded(), key, in: &state, of: store)
        stores[store] = state
    }

    private func put(_ stamp: Stamp, _ value: [UInt8]?, _ key: Key, in state: inout StoreState, of store: String) {
        lastN[store, default: 0] += 1
        let entry = Entry(stamp: stamp, n: lastN[store] ?? 1, value: value)
        state.entries[key] = entry
        state.vector.insert(entry.dot)
        sequences[store, default: 0] += 1
        pending.insert(store)
    }

    /// Returns the values of a store.
    public func values(_ store: String) -> [String: Value] {
        var values: [String: Value] = [:]
        for (key, entry) in stores[store]?.entries ?? [:] {
            if let bytes = entry.value { values[key.string] = try? Value(encoded: bytes) }
        }
        return values
    }

    /// Removes tombstones, as happens some months after the deletion.
    public func forgetTombstones(_ store: String) {
        let entries = stores[store]?.entries ?? [:]
        stores[store]?.entries = entries.filter { $0.value.value != nil }
        sequences[store, default: 0] += 1
    }

    /// Restarts the device, which continues under another origin.
    public func restart(with backend: any RemoteBackend) {
        self.backend = backend
        cycle = SyncCycle()
        leaveOrigin()
    }

    private func leaveOrigin() {
        formerOrigins.append(origin)
        origin = Origin(bits: nextRandom())
        lastN = [:]
    }

    // MARK: Cycles

    /// Whether something was written that no push has uploaded.
    public var hasPendingChanges: Bool { !pending.isEmpty }

    /// Pulls, and joins what is new.
    /// - Returns: whether everything was read.
    /// - Throws: what the backend throws; `RemoteError` with the code `reset` if the remote holds another account.
    @discardableResult
    public func pull() async throws(RemoteError) -> Bool {
        cycle.schedule = nil
        _ = cycle.begin(0)
        try await makeCycle()
        return cycle.isPullComplete
    }

    /// Publishes everything that the device holds.
    /// - Throws: what the backend throws.
    public func push() async throws(RemoteError) {
        cycle.schedule = nil
        cycle.beginPush(0)
        try await makeCycle()
    }

    /// Pulls, and publishes if something is pending.
    /// - Returns: whether everything was read.
    /// - Throws: what ``pull()`` and ``push()`` throw.
    @discardableResult
    public func sync() async throws(RemoteError) -> Bool {
        cycle.schedule = SyncSchedule(backend.traits, now: 0)
        cycle.schedule?.request(0)
        _ = cycle.begin(0)
        try await makeCycle()
        return cycle.isPullComplete
    }

    private func makeCycle() async throws(RemoteError) {
        do { try await makeCycle(with: backend) } catch {
            cycle.cut(0)
            throw error as? RemoteError ?? RemoteError(.device, "\(error)")
        }
    }

    /// Collects garbage.
    /// - Parameter origins: the origins of devices that the user has removed from the list.
    /// - Throws: what the backend throws, which the service ignores.
    public func collectGarbage(forgetting origins: Set<Origin> = []) async throws(RemoteError) {
        try await backend.collectGarbage(
            GarbageCollection(account: account, origin: origin, forgottenOrigins: origins, time: time))
    }
}

extension BackendDevice: BackendUser {
    /// Facts by which neither the daily upload nor the daily garbage collection is ever due.
    package var facts: SyncCycle.Facts {
        SyncCycle.Facts(
            now: 0, time: time, traits: backend.traits, isDownloaded: true, isPending: hasPendingChanges,
            lastPush: time, lastGarbageCollection: time)
    }

    /// Empty, because the device forgets tombstones whenever it is told to.
    package var rememberedTimes: Range<UInt64> { 0..<0 }
    package var downloadEpoch: Int { 0 }
    package var publicationCount: UInt64 { counts[origin] ?? 0 }

    package func isCurrent(_ backend: any RemoteBackend) -> Bool { true }

    package func hasForgotten(_ origins: Set<Origin>) -> Bool { false }

    package func leave(_ shared: Set<Origin>) -> Bool {
        let left = shared.intersection(formerOrigins + [origin])
        if left.isEmpty { return false }
        leaveOrigin()
        for store in stores.keys.sorted() { redot(store, from: left) }
        return true
    }

    /// Gives the device's entries with dots of shared origins new dots under the present one.
    private func redot(_ store: String, from left: Set<Origin>) {
        guard var state = stores[store] else { return }
        state.vector = state.vector.filter { !left.contains($0.origin) }
        for (key, entry) in state.entries.sorted(by: { $0.key < $1.key }) where left.contains(entry.stamp.origin) {
            let old = entry.stamp
            let stamp = Stamp(isProvisional: old.isProvisional, wall: old.wall, counter: old.counter, origin: origin)
            put(stamp, entry.value, key, in: &state, of: store)
        }
        stores[store] = state
    }

    package func replica(of store: String) -> (StoreState, isArriving: Bool)? {
        (stores[store] ?? StoreState(), false)
    }

    package func carryOut(_ plan: JoinPlan, in state: StoreState, of store: String, isArriving: Bool) -> Bool {
        var state = state
        state.carryOut(plan)
        stores[store] = state
        sequences[store, default: 0] += 1
        return true
    }

    package func note(_ pull: any RemotePull) throws {
        guard pull.account.isNamed(account) else { throw RemoteError(.reset, "The remote holds another account.") }
        account = pull.account.identifier
        (lastPull, ownPublication) = (pull, pull.ownPublication)
    }

    package func keep(_ result: PullResult, isRead: Bool, tooLarge: Set<String>) { cursor = result.cursor }

    package func publication() -> Publication {
        counts[origin, default: 0] += 1
        uploading = sequences
        return Publication(
            account: account, origin: origin, formerOrigins: formerOrigins, counts: counts,
            device: RemoteDevice(identifier: name, name: name),
            stores: stores.keys.sorted().map {
                AccountStore(identifier: $0, sequence: sequences[$0] ?? 0, published: published[$0] ?? 0)
            },
            time: time)
    }

    package func snapshot(of store: String) -> StoreSnapshot? {
        StoreSnapshot(identifier: store, state: stores[store] ?? StoreState(), sequence: uploading[store] ?? 0)
    }

    package func synchronize() async {}

    package func markPublished(_ uploaded: [String: UInt64], under origin: Origin) {
        published = uploading
        pending = pending.filter { sequences[$0] != uploading[$0] }
        ownPublication = .asPublished
    }

    package func garbageCollection() -> GarbageCollection {
        GarbageCollection(account: account, origin: origin, forgottenOrigins: [], time: time)
    }
}
