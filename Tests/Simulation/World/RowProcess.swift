// SPDX-License-Identifier: Apache-2.0

// What AccountSync does in a pass, with the backend of etcd as it is, and entries in memory.

internal import Etcd
internal import PropertyList
internal import Replication
internal import StoreEngine
internal import SyncEngine

/// A process of the core whose account is in a cluster.
final class RowProcess: CoreProcess, @unchecked Sendable {
    // As its base says.
    private let backend: EtcdBackend
    private let gateway: ClusterGateway

    init?(_ device: CoreDevice, _ cluster: Cluster) {
        let client = Client(device: device.number)
        gateway = ClusterGateway(cluster, client, device.world.timeline)
        nonisolated(unsafe) unowned let (device, world) = (device, device.world)
        // Safe because all of it happens on one thread.
        let environment = Environment(
            time: { world.now(device) * 1000 }, random: { world.chance.next() })
        let members = (0..<Cluster.members).map { "member\($0)" }.joined(separator: ",")
        do throws(RemoteError) {
            backend = try EtcdBackend.make(
                url: "etcd://\(members)/account", gateway: gateway, environment: environment,
                executor: world.executor.serial,
                limits: EtcdLimits(
                    operations: world.conditions.mostOperations, tokens: world.conditions.mostTokens))
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

    // MARK: Passes

    override func pass() {
        beginCycle()
        world.executor.start { [self] in
            do throws(RemoteError) { try await makeCycle() } catch {
                if error.code == .reset { await bringBack() }
                _ = proceed(Result<Void, RemoteError>.failure(error))
            }
        }
    }

    private func makeCycle() async throws(RemoteError) {
        let received = try await download()
        guard client.isAlive else { return }
        schedule?.traits = traits
        var uploaded = false
        if mayUpload { uploaded = try await upload() }
        guard client.isAlive else { return }
        passed(received: received, uploaded: uploaded)
    }

    /// The cluster was restored to when there was no account: its user says that what is here is right.
    private func bringBack() async {
        await gateway.pause(for: .seconds(600))
        guard client.isAlive, let account = device.disk.current.account else { return }
        _ = try? await backend.restore(account)
    }

    private func download() async throws(RemoteError) -> Bool {
        if device.disk.current.account == nil {
            let account = try await backend.open(creatingAccount: true).identifier
            guard client.isAlive else { return false }
            device.disk.current.account = account
        }
        let isDownloaded = device.disk.current.isDownloaded
        guard let origin = device.disk.origin, let account = device.disk.current.account else { return false }
        let pull = try await backend.pull(after: isDownloaded ? device.disk.current.cursor : nil, as: origin)
        guard client.isAlive else { return false }
        guard pull.account.isNamed(account) else { throw RemoteError(.reset, "another account") }
        device.disk.current.account = pull.account.identifier
        note(pull.ownPublication, origin)
        var (joined, received): (Set<String>, Bool) = ([], false)
        for name in pull.stores {
            let change = try await pull.change(of: name)
            guard client.isAlive else { return received }
            guard let store = Names.stores.firstIndex(of: name) else { continue }
            if !device.disk.replica(store).isDownloaded, !change.isComplete || change.isDelta { continue }
            if join(store, change.states, isDelta: change.isDelta) { received = true }
            joined.insert(name)
        }
        let result = await pull.finish(joined: joined)
        guard client.isAlive, result.isComplete || isDownloaded else { return received }
        device.disk.current.cursor = result.cursor
        if !isDownloaded {
            for store in 0..<world.conditions.stores where !device.disk.replica(store).isDownloaded {
                _ = join(store, nil)
            }
            device.disk.current.isDownloaded = true
        }
        return received
    }

    private func note(_ publication: OwnPublication, _ origin: Origin) {
        switch publication {
        case .asPublished: isMissing = false
        case .missing, .outdated: isMissing = true
        case .foreign:
            isMissing = true
            if Rule.leaveClones.isOn { device.leave([origin]) }
        }
    }

    // MARK: Upload

    private func upload() async throws(RemoteError) -> Bool {
        guard let origin = device.disk.origin, let account = device.disk.current.account else { return false }
        recordPublication()
        var counts = device.disk.formerCounts
        counts[origin] = device.disk.publications
        let stores = (0..<world.conditions.stores).map { store in
            let replica = device.disk.replica(store)
            return AccountStore(
                identifier: Names.stores[store], sequence: replica.sequence, published: replica.published)
        }
        let name = "device\(device.number)"
        let push = try await backend.push(
            Publication(
                account: account, origin: origin, formerOrigins: device.disk.formerOrigins, counts: counts,
                device: RemoteDevice(identifier: name, name: name), stores: stores, time: world.now(device) * 1000))
        guard client.isAlive else { return false }
        let indexes = push.stores.compactMap { Names.stores.firstIndex(of: $0) }
        let snapshots = indexes.map { store in
            let replica = device.disk.replica(store)
            return (
                store, StoreSnapshot(identifier: Names.stores[store], state: replica.state, sequence: replica.sequence)
            )
        }
        await gateway.pause(for: .milliseconds(5))
        guard client.isAlive, device.disk.origin == origin else { return false }
        if Rule.syncFirst.isOn { device.synced = device.disk }
        for (store, snapshot) in snapshots {
            checkOnDisk(snapshot.state.vector, store)
            try await push.upload(snapshot)
        }
        try await push.finish()
        guard client.isAlive, device.disk.origin == origin else { return false }
        isMissing = false
        device.disk.current.pushed = world.now(device)
        for (store, snapshot) in snapshots { mark(store, snapshot.sequence) }
        return true
    }
}
