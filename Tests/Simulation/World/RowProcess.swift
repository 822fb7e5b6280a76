// SPDX-License-Identifier: Apache-2.0

// The cycles of a device of the core form, with the real backend for etcd.

internal import Etcd
internal import PropertyList
internal import Replication
internal import Sealing
internal import StoreEngine
internal import SyncEngine

/// A process of the core form whose account is in a cluster.
final class RowProcess: CoreProcess, BackendUser, @unchecked Sendable {
    // Safe for the reason given at CoreProcess.
    private let backend: any RemoteBackend
    private let gateway: ClusterGateway

    init?(_ device: CoreDevice, _ cluster: Cluster, key: HeldKey?) {
        let client = Client(device: device.number)
        gateway = ClusterGateway(cluster, client, device.world.timeline)
        nonisolated(unsafe) unowned let (device, world) = (device, device.world)
        // Safe because everything happens on one thread.
        let environment = Environment(
            time: { world.now(device) * 1000 }, random: { world.chance.next() })
        do throws(RemoteError) {
            backend = try cluster.backend(
                for: client, world.conditions, environment, world.executor.serial, key: key)
        } catch {
            return nil
        }
        super.init(device, client)
    }

    override var traits: BackendTraits { backend.traits }

    override func begin() {
        super.begin()
        world.executor.start { [self] in
            for await _ in backend.hints() { if client.isAlive { noteHint() } }
        }
    }

    override func end() {
        super.end()
        world.executor.start { [backend] in await backend.close() }
    }

    // MARK: A cycle

    override func startCycle() {
        world.executor.start { [self] in
            do {
                try await openAccount()
                if client.isAlive { try await makeCycle(with: backend) }
                if client.isAlive { rest() }
            } catch {
                let error = error as? RemoteError ?? RemoteError(.device, "\(error)")
                if error.code == .reset { await bringBack() }
                if client.isAlive { fail(error) }
            }
        }
    }

    private func openAccount() async throws {
        if device.disk.current.account != nil { return }
        let account = try await backend.open(creatingAccount: true).identifier
        if client.isAlive { device.disk.current.account = account }
    }

    /// Restores the account, as its user would: the cluster was restored to a state without it.
    private func bringBack() async {
        await gateway.pause(for: .seconds(600))
        guard client.isAlive, let account = device.disk.current.account else { return }
        _ = try? await backend.restore(account)
    }

    // MARK: The device

    /// The version vectors of the snapshots of a publication, by store.
    private var vectors: [String: VersionVector] = [:]
    var downloadEpoch: Int { 0 }
    var cursor: [UInt8]? { device.disk.current.isDownloaded ? device.disk.current.cursor : nil }
    var publicationCount: UInt64 { device.disk.publications }

    func hasForgotten(_ origins: Set<Origin>) -> Bool { false }

    func isCurrent(_ backend: any RemoteBackend) -> Bool { client.isAlive }

    func note(_ pull: any RemotePull) throws {
        guard let account = device.disk.current.account, pull.account.isNamed(account) else {
            throw RemoteError(.reset, "another account")
        }
        device.disk.current.account = pull.account.identifier
    }

    func keep(_ result: PullResult, isRead: Bool, tooLarge: Set<String>) {
        device.disk.current.cursor = result.cursor
        arriveEverywhere()
    }

    func publication() -> Publication {
        recordPublication()
        var counts = device.disk.formerCounts
        counts[origin] = device.disk.publications
        let name = "device\(device.number)"
        return Publication(
            account: device.disk.current.account ?? "", origin: origin, formerOrigins: device.disk.formerOrigins,
            counts: counts, device: RemoteDevice(identifier: name, name: name),
            stores: Names.stores.prefix(world.conditions.stores).enumerated().map { store, name in
                let replica = device.disk.replica(store)
                return AccountStore(identifier: name, sequence: replica.sequence, published: replica.published)
            }, time: world.now(device) * 1000)
    }

    func snapshot(of store: String) -> StoreSnapshot? {
        guard let (replica, _) = replica(of: store) else { return nil }
        vectors[store] = replica.state.vector
        return StoreSnapshot(identifier: store, state: replica.state, sequence: replica.sequence)
    }

    func synchronize() async {
        await gateway.pause(for: .milliseconds(5))
        if client.isAlive { device.synced = device.disk }
    }

    func markPublished(_ sequences: [String: UInt64], under origin: Origin) {
        guard origin == self.origin else { return }
        device.disk.current.pushed = max(1, world.now(device))
        for (identifier, sequence) in sequences {
            guard let store = Names.stores.firstIndex(of: identifier), let vector = vectors[identifier] else {
                continue
            }
            checkOnDisk(vector, store)
            mark(store, sequence)
        }
    }

    func garbageCollection() -> GarbageCollection {
        device.disk.current.collected = world.now(device)
        return GarbageCollection(
            account: device.disk.current.account ?? "", origin: origin, forgottenOrigins: [],
            time: world.now(device) * 1000)
    }
}
