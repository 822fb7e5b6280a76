// SPDX-License-Identifier: Apache-2.0

public import PropertyList
public import Replication
internal import SeededRandom

/// A device without a disk: what the sync engine does with a backend in a pass, without its patience and its
/// notifications. Deterministic for a seed.
public final class BackendDevice {
    /// What it holds, by the stores' identifiers.
    public private(set) var stores: [String: StoreState] = [:]
    /// Under which it writes.
    public private(set) var origin: Origin
    /// Microseconds since 1970, by its clock.
    public var time: UInt64 = 1_700_000_000_000_000
    /// The account that it has signed in to; empty before.
    public private(set) var account = ""
    /// What was found under its own name at the last pull.
    public private(set) var ownPublication = OwnPublication.asPublished
    /// What the last pull had to say.
    public private(set) var problems: [String] = []

    /// The device's name.
    public let name: String
    /// Through which it goes; a new one is what a restart has.
    public var backend: any RemoteBackend
    private var cursor: [UInt8]?
    private var random: SplitMix
    private var formerOrigins: [Origin] = []
    private var counts: [Origin: UInt64] = [:]
    private var lastN: [String: UInt64] = [:]
    private var sequences: [String: UInt64] = [:]
    private var published: [String: UInt64] = [:]
    private var pending: Set<String> = []
    private var hasPublished = false

    /// A device that holds nothing.
    public init(_ name: String, seed: UInt64, backend: any RemoteBackend) {
        (self.name, self.backend, random) = (name, backend, SplitMix(seed: seed))
        origin = Origin(bits: 0)
        origin = Origin(bits: nextRandom())
    }

    /// A number of its generator.
    public func nextRandom() -> UInt64 { random.next() }

    // MARK: What a person does

    /// Signs in.
    public func signIn(creating: Bool) async throws(RemoteError) {
        account = try await backend.open(creatingAccount: creating).identifier
    }

    /// Writes a value; `nil` removes it. Returns at once, as writing always does.
    public func set(_ store: String, _ key: String, _ value: Value?) {
        var state = stores[store] ?? StoreState()
        let key = Key(unchecked: key)
        time += 1_000_000
        lastN[store, default: 0] += 1
        let stamp = Stamp(
            after: state.entries[key]?.stamp, wall: time / 1000, origin: origin, isProvisional: false)
        let entry = Entry(stamp: stamp, n: lastN[store] ?? 1, value: value?.encoded())
        state.entries[key] = entry
        state.vector.insert(entry.dot)
        stores[store] = state
        sequences[store, default: 0] += 1
        pending.insert(store)
    }

    /// The values of a store.
    public func values(_ store: String) -> [String: Value] {
        var values: [String: Value] = [:]
        for (key, entry) in stores[store]?.entries ?? [:] {
            if let bytes = entry.value { values[key.string] = try? Value(encoded: bytes) }
        }
        return values
    }

    /// Tombstones go, as they do some months after the deletion.
    public func forgetTombstones(_ store: String) {
        let entries = stores[store]?.entries ?? [:]
        stores[store]?.entries = entries.filter { $0.value.value != nil }
        sequences[store, default: 0] += 1
    }

    /// The machine is started anew: it goes on under another origin.
    public func restart(with backend: any RemoteBackend) {
        self.backend = backend
        leaveOrigin()
    }

    private func leaveOrigin() {
        formerOrigins.append(origin)
        origin = Origin(bits: nextRandom())
        lastN = [:]
    }

    // MARK: Passes

    /// Whether something was written that no push has finished with.
    public var hasPendingChanges: Bool { !pending.isEmpty }

    /// Looks, and joins what is new.
    /// - Returns: whether everything was read.
    @discardableResult
    public func pull() async throws(RemoteError) -> Bool {
        let pull = try await backend.pull(
            after: cursor, as: origin, published: counts[origin] ?? 0)
        guard pull.account.isNamed(account) else { throw RemoteError(.reset, "another account") }
        account = pull.account.identifier
        (ownPublication, problems) = (pull.ownPublication, pull.problems)
        if case .foreign = ownPublication { leaveOrigin() }
        var joined: Set<String> = []
        for store in pull.stores {
            let change = try await pull.change(of: store)
            let before = stores[store] ?? StoreState()
            stores[store, default: StoreState()].join(change.states.state(over: before), isDelta: change.isDelta)
            joined.insert(store)
            if stores[store] != before { sequences[store, default: 0] += 1 }
        }
        problems += pull.problems.filter { !problems.contains($0) }
        let result = await pull.finish(joined: joined)
        cursor = result.cursor
        return result.isComplete
    }

    /// What it is about to publish.
    public var publication: Publication {
        Publication(
            account: account, origin: origin, formerOrigins: formerOrigins, counts: counts,
            device: RemoteDevice(identifier: name, name: name),
            stores: stores.keys.sorted().map {
                AccountStore(identifier: $0, sequence: sequences[$0] ?? 0, published: published[$0] ?? 0)
            },
            time: time)
    }

    /// Publishes all that it holds.
    public func push() async throws(RemoteError) {
        counts[origin, default: 0] += 1
        let push = try await backend.push(publication)
        let sent = sequences
        for store in push.stores {
            try await push.upload(
                StoreSnapshot(identifier: store, state: stores[store] ?? StoreState(), sequence: sent[store] ?? 0))
        }
        try await push.finish()
        (published, pending, hasPublished) = (sent, [], true)
        ownPublication = .asPublished
    }

    /// Looks, and publishes if there is something to publish.
    @discardableResult
    public func sync() async throws(RemoteError) -> Bool {
        let isComplete = try await pull()
        var isMissing = hasPublished
        if case .asPublished = ownPublication { isMissing = false }
        if hasPendingChanges || isMissing { try await push() }
        return isComplete
    }

    /// Cleans up.
    public func collectGarbage(forgetting origins: Set<Origin> = []) async throws(RemoteError) {
        try await backend.collectGarbage(
            GarbageCollection(account: account, origin: origin, forgottenOrigins: origins, time: time))
    }
}
