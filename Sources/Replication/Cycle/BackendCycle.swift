// SPDX-License-Identifier: Apache-2.0

/// A device whose cycles are made with a backend.
package protocol BackendUser: SyncDevice {
    /// Changes when a store was taken into use, or out of it, whose news a pull under way may have skipped.
    var downloadEpoch: Int { get }
    /// Where the last pull ended; `nil`: the next one reads everything.
    var cursor: [UInt8]? { get }
    /// How often it has begun to publish under its origin.
    var publicationCount: UInt64 { get }

    /// Whether a cycle that began with a backend may go on.
    func isCurrent(_ backend: any RemoteBackend) -> Bool
    /// What a pull says of the account and its devices.
    func note(_ pull: any RemotePull) throws
    /// Keeps where a pull ended.
    func keep(_ result: PullResult, isRead: Bool, tooLarge: Set<String>) throws
    /// Counts a publication that is about to begin, and says what is published.
    func publication() throws -> Publication
    /// Those of the stores that take part in the sync, as they are now.
    func snapshots(of stores: [String]) throws -> [StoreSnapshot]
    /// Syncs the disk.
    func synchronize() async throws
    /// Marks what was uploaded, and nothing else, as published.
    func markPublished(_ snapshots: [StoreSnapshot], under origin: Origin) throws
    /// Records that garbage is collected now, and says what for.
    func garbageCollection() throws -> GarbageCollection
}

extension BackendUser {
    /// Makes the cycle that has begun.
    /// - Throws: why it can't go on.
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
    private var snapshots: [StoreSnapshot] = []

    init(_ device: Device, _ backend: any RemoteBackend) {
        (self.device, self.backend, epoch) = (device, backend, device.downloadEpoch)
    }

    mutating func run() async throws {
        var action = device.cycle.action
        while action != .rest {
            let event = try await carryOut(action)
            guard device.isCurrent(backend) else { return }
            action = device.cycle.next(after: event, device.facts)
        }
    }

    private mutating func carryOut(_ action: SyncCycle.Action) async throws -> SyncCycle.Event {
        switch action {
        case .pull: return try await beginPull()
        case .leaveOrigin: _ = try device.leave([device.origin])
        case .read(let store): return try await read(store)
        case .endPull(let joined): return await endPull(joined)
        case .keep(let isRead, let tooLarge): try device.keep(result, isRead: isRead, tooLarge: tooLarge)
        case .beginPush: return try await beginPush()
        case .synchronize:
            try await device.synchronize()
            return upload
        case .upload(let store):
            for snapshot in snapshots where snapshot.identifier == store { try await push?.upload(snapshot) }
            return upload
        case .endPush: try await push?.finish()
        case .markPublished: try device.markPublished(snapshots, under: origin)
        case .collectGarbage:
            // Nothing depends on it, and the next pull says what keeps it from being done.
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
        noteProblems()
        return .pulled(pull.ownPublication, stores: pull.stores, beginsAnew: cursor == nil)
    }

    /// Some are found at the look, others as stores are read.
    private func noteProblems() {
        if let sentence = pull?.problems.first { device.cycle.noteUnread(RemoteError(.damaged, sentence)) }
    }

    private func read(_ store: String) async throws -> SyncCycle.Event {
        guard let change = try await pull?.change(of: store), device.isCurrent(backend) else { return .interrupted }
        // Of a store that was taken into use meanwhile this may be the news only, and the first to arrive is all.
        return epoch == device.downloadEpoch ? .joined(try device.join(change, to: store)) : .interrupted
    }

    private mutating func endPull(_ joined: Set<String>) async -> SyncCycle.Event {
        noteProblems()
        guard let result = await pull?.finish(joined: joined), epoch == device.downloadEpoch else {
            return .interrupted
        }
        self.result = result
        return .ended(isComplete: result.isComplete)
    }

    private mutating func beginPush() async throws -> SyncCycle.Event {
        let publication = try device.publication()
        origin = publication.origin
        let push = try await backend.push(publication)
        guard case .done = upload else { return .interrupted }
        self.push = push
        snapshots = try device.snapshots(of: push.stores)
        return .began(stores: snapshots.map(\.identifier))
    }

    /// Whether an upload may go on. Where the device has taken another origin, as when a store was forgotten, the next
    /// cycle uploads.
    private var upload: SyncCycle.Event { device.isCurrent(backend) && origin == device.origin ? .done : .interrupted }
}
