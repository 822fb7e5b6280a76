// SPDX-License-Identifier: Apache-2.0

internal import Blobs
internal import Replication
internal import Sealing

/// The backend of an encrypted account in a cluster: blobs, and the rows of its unencrypted form, as long as they
/// exist.
actor EtcdSealedBackend: RemoteBackend {
    private let blobs: BlobBackend<EtcdStorage>
    private let storage: EtcdStorage
    /// Reads the rows of an unencrypted account that moves to a key; `nil` if it does not.
    private let rows: EtcdBackend?

    init(_ client: EtcdClient, _ environment: Environment, _ protection: Protection) {
        storage = EtcdStorage(client, environment)
        blobs = BlobBackend(storage: storage, environment: environment, protection: protection)
        let isFromPlain = protection.move.map { $0.former == nil } ?? false
        rows = isFromPlain ? EtcdBackend(client, environment) : nil
    }

    /// Makes a backend for a simulation, with its own executor, of an account that does not move.
    init(_ client: EtcdClient, _ environment: Environment, executor: any SerialExecutor, under key: HeldKey) {
        storage = EtcdStorage(client, environment)
        blobs = BlobBackend(storage: storage, environment: environment, executor: executor, protection: .key(key))
        rows = nil
    }

    /// The blobs' executor, since rows are decoded here, too.
    nonisolated var unownedExecutor: UnownedSerialExecutor { blobs.unownedExecutor }

    nonisolated var traits: BackendTraits { blobs.traits }

    func open(creatingAccount createsAccount: Bool) async throws(RemoteError) -> RemoteAccount {
        try await blobs.open(creatingAccount: createsAccount)
    }

    func restore(_ account: String) async throws(RemoteError) -> RemoteAccount { try await blobs.restore(account) }

    func pull(
        after cursor: [UInt8]?, as origin: Origin, published count: UInt64
    ) async throws(RemoteError) -> any RemotePull {
        guard let rows else { return try await blobs.pull(after: cursor, as: origin, published: count) }
        // The fence exists once this returns, so the rows that are read are final.
        await rows.read(moving: try await blobs.presentAccount())
        return try await rows.pull(after: cursor, as: origin, published: count)
    }

    func push(_ publication: Publication) async throws(RemoteError) -> any RemotePush {
        try await blobs.push(publication)
    }

    func doubtPublication() async { await blobs.doubtPublication() }

    func collectGarbage(_ request: GarbageCollection) async throws(RemoteError) {
        try await blobs.collectGarbage(request)
    }

    nonisolated func hints() -> AsyncStream<Void> { blobs.hints() }

    func close() async {
        await rows?.close()
        await blobs.close()
    }
}

extension EtcdSealedBackend: KeyHolding {
    var heldKey: HeldKey? { get async { await blobs.heldKey } }

    func noteJoining(from former: AccountKey?, _ forms: FormerForms) async throws {
        try await blobs.noteJoining(from: former, forms)
    }

    func rejectOtherKeys(andSuccessors successors: Bool) async throws {
        try await blobs.rejectOtherKeys(andSuccessors: successors)
    }

    func awaitOtherKey(besides formerNames: Set<String>) async throws {
        try await blobs.awaitOtherKey(besides: formerNames)
    }

    func checkKey() async -> [BackendCheck] { await blobs.checkKey() }

    /// Removes the rows, and then the markers, which say whose rows they are.
    func removeFormerForms() async throws {
        guard let former = await blobs.heldKey?.former, !former.isEmpty else { return }
        // The key may have been replaced meanwhile.
        _ = try await blobs.presentAccount()
        try await storage.removeRows(of: Set(former.plain.map { Bits128($0) }))
        try await blobs.removeFormerForms()
    }
}
