// SPDX-License-Identifier: Apache-2.0

/// A device whose cycles run against a backend.
package protocol BackendUser: SyncDevice {
    /// Changes whenever a store comes into use or goes out of it, because a pull under way may skip that store.
    var downloadEpoch: Int { get }
    /// Where the last pull ended; `nil` if the next one reads everything.
    var cursor: [UInt8]? { get }
    /// How often the device has begun to publish under its origin.
    var publicationCount: UInt64 { get }

    /// Whether a cycle that began with a backend may continue.
    func isCurrent(_ backend: any RemoteBackend) -> Bool
    /// Records the account and its devices, as a pull has found them.
    func note(_ pull: any RemotePull) throws
    /// Whether the user has removed the devices that wrote under these origins from the account's list.
    func hasForgotten(_ origins: Set<Origin>) throws -> Bool
    /// Stores the cursor at which a pull ended.
    func keep(_ result: PullResult, isRead: Bool, tooLarge: Set<String>) throws
    /// Counts a publication that is about to begin, and returns it.
    func publication() throws -> Publication
    /// A snapshot of a store; `nil` if it isn't synced.
    func snapshot(of store: String) throws -> StoreSnapshot?
    /// Syncs the disk.
    func synchronize() async throws
    /// Marks exactly what was uploaded as published: of each store, the changes up to a sequence.
    func markPublished(_ sequences: [String: UInt64], under origin: Origin) throws
    /// Records that garbage is collected now, and returns the request.
    func garbageCollection() throws -> GarbageCollection
    /// Leaves the processor to others if the cycle has used it for long.
    func giveWay() async
}

extension BackendUser {
    package func giveWay() async {}

    /// Runs the cycle that has begun.
    /// - Throws: the reason, if the cycle can't continue.
    package func makeCycle(with backend: any RemoteBackend) async throws {
        var cycle = BackendCycle(self, backend)
        try await cycle.run()
    }
}

/// Carries out a cycle's actions with a backend.
private struct BackendCycle<Device: BackendUser> {
    let device: Device
    let backend: any RemoteBackend
    private let epoch: Int
    private var pull: (any RemotePull)?
    private var result = PullResult(cursor: [], isComplete: false)
    private var push: (any RemotePush)?
    private var origin = Origin(bits: 0)
    /// Up to which sequence the disk is known to have each store.
    private var durable: [String: UInt64] = [:]
    /// The state to upload once the disk is synced.
    private var unsynced: StoreSnapshot?
    /// Up to which sequence each store was uploaded.
    private var uploaded: [String: UInt64] = [:]

    init(_ device: Device, _ backend: any RemoteBackend) {
        (self.device, self.backend, epoch) = (device, backend, device.downloadEpoch)
    }

    mutating func run() async throws {
        var action = device.cycle.action
        while action != .rest {
            let event = try await carryOut(action)
            await device.giveWay()
            guard device.isCurrent(backend) else { return }
            action = device.cycle.next(after: event, device.facts)
        }
    }

    private mutating func carryOut(_ action: SyncCycle.Action) async throws -> SyncCycle.Event {
        switch action {
        case .pull: return try await beginPull()
        case .leaveOrigin: _ = try device.leave([device.origin])
        case .read(let store): return try await read(store)
        case .endPull(let joined): return try await endPull(joined)
        case .keep(let isRead, let tooLarge): try device.keep(result, isRead: isRead, tooLarge: tooLarge)
        case .beginPush: return try await beginPush()
        case .synchronize:
            try await device.synchronize()
            return upload
        case .upload(let store): return try await upload(store)
        case .endPush:
            guard case .done = upload else { return .interrupted }
            try await push?.finish()
        case .markPublished: try device.markPublished(uploaded, under: origin)
        case .collectGarbage:
            // Nothing depends on this, and the next pull reports what prevents it.
            let request = try device.garbageCollection()
            try? await backend.collectGarbage(request)
        case .rest: break
        }
        return .done
    }

    private mutating func beginPull() async throws -> SyncCycle.Event {
        let cursor = device.cursor
        let pull = try await backend.pull(
            after: cursor, as: device.origin, published: device.publicationCount)
        guard device.isCurrent(backend) else { return .interrupted }
        self.pull = pull
        try device.note(pull)
        return .pulled(pull.ownPublication, stores: pull.stores, beginsAnew: cursor == nil)
    }

    private func read(_ store: String) async throws -> SyncCycle.Event {
        guard let change = try await pull?.change(of: store), device.isCurrent(backend) else { return .interrupted }
        // A store that came into use meanwhile may have only recent changes here, but has to receive everything first.
        return epoch == device.downloadEpoch ? .joined(try device.join(change, to: store)) : .interrupted
    }

    private mutating func endPull(_ joined: Set<String>) async throws -> SyncCycle.Event {
        if let sentence = pull?.problems.first { device.cycle.noteUnread(RemoteError(.damaged, sentence)) }
        guard let result = await pull?.finish(joined: joined), epoch == device.downloadEpoch else {
            return .interrupted
        }
        self.result = result
        let lacking = result.lackingOrigins
        return .ended(
            isComplete: result.isComplete,
            lacksOnlyForgotten: try !lacking.isEmpty && device.hasForgotten(lacking))
    }

    private mutating func beginPush() async throws -> SyncCycle.Event {
        let publication = try device.publication()
        origin = publication.origin
        let push = try await backend.push(publication)
        guard case .done = upload else { return .interrupted }
        self.push = push
        durable = Dictionary(publication.stores.map { ($0.identifier, $0.sequence) }) { $1 }
        return .began(stores: push.stores)
    }

    /// Uploads a store as it is now, or as it was before the disk was synced for it. If all were loaded before the first
    /// one is uploaded, the memory would have to hold them all.
    private mutating func upload(_ store: String) async throws -> SyncCycle.Event {
        guard case .done = upload else { return .interrupted }
        guard let snapshot = try unsynced ?? device.snapshot(of: store) else { return upload }
        // Others must not see what this device may lose.
        if unsynced == nil, snapshot.sequence != durable[store] {
            unsynced = snapshot
            return .unsynced
        }
        unsynced = nil
        try await push?.upload(snapshot)
        uploaded[store] = snapshot.sequence
        return upload
    }

    /// Whether an upload may continue. If the device has taken another origin, for example because a store was
    /// forgotten, the next cycle uploads.
    private var upload: SyncCycle.Event { device.isCurrent(backend) && origin == device.origin ? .done : .interrupted }
}
