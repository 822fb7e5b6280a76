// SPDX-License-Identifier: Apache-2.0

package import BackendSupport
internal import HTTPClient
internal import PropertyList
internal import RemoteAddress
package import Replication
package import Sealing

/// The backend for `etcds://HOST,HOST/PREFIX` and `etcd://HOST,HOST/PREFIX`: rows of an etcd cluster.
///
/// All devices share one state of each store, in rows. A device reads the rows that have changed since its last poll,
/// and joins its own state to them in transactions.
package actor EtcdBackend: RemoteBackend {
    /// The descriptor of etcd clusters.
    package static let descriptor = BackendDescriptor(.etcd) {
        site throws(RemoteError) in
        EtcdBackend.make(
            try EtcdClient(try EtcdURL(site.url), site.credentials), .system, protection: site.protection)
    } check: {
        await EtcdBackend.check(url: $0.url, credentials: $0.credentials)
    }

    nonisolated let client: EtcdClient
    nonisolated let layout: EtcdLayout
    nonisolated let watch: EtcdWatch
    let environment: Environment
    private(set) var row: EtcdAccountRow
    private(set) var reader: EtcdReader
    var memory = EtcdMemory()
    private var isClosed = false
    let limits: EtcdLimits
    /// This account's share of the bound on what all accounts hold in memory.
    private let share: RemoteBudget.Share
    private let executor: any SerialExecutor

    /// Decodes responses and joins states on a thread that exists only while there is work.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Makes a backend for an address. It sends nothing before it is opened.
    /// - Throws: `RemoteError.unsupported` if the address is not one of an etcd cluster, or the credentials are
    ///   invalid.
    package static func make(
        url: String, credentials: ServerCredentials, environment: Environment = .system
    ) throws(RemoteError) -> EtcdBackend {
        EtcdBackend(try EtcdClient(try EtcdURL(url), credentials), environment)
    }

    /// Makes the backend for an account: rows if it is unencrypted, blobs if it is or will be encrypted. Each of the
    /// two notices if the account is in the other form.
    static func make(
        _ client: EtcdClient, _ environment: Environment, protection: Protection
    ) -> any RemoteBackend {
        guard protection.isWanted else { return EtcdBackend(client, environment) }
        return EtcdSealedBackend(client, environment, protection)
    }

    /// Tests an address, and leaves nothing behind.
    package static func check(
        url: String, credentials: ServerCredentials, environment: Environment = .system,
        within time: Duration = BackendDescriptor.checkTime
    ) async -> [BackendCheck] {
        await BackendCheck.steps { () throws(RemoteError) in
            try EtcdClient(try EtcdURL(url), credentials, deadline: .now + time)
        } warning: {
            $0.url.warning
        } _: { client in
            defer { client.close() }
            var probe = EtcdProbe(client, environment)
            await probe.run()
            return probe.checks
        }
    }

    /// Makes a backend for a simulation, with its own gateway to the cluster and its own executor.
    package static func make(
        url: String, gateway: any EtcdGateway, environment: Environment, executor: any SerialExecutor,
        limits: EtcdLimits
    ) throws(RemoteError) -> EtcdBackend {
        EtcdBackend(
            EtcdClient(try EtcdURL(url), .nothing, gateway), environment, executor: executor, limits: limits,
            budget: RemoteBudget())
    }

    /// Makes the same for an encrypted account.
    package static func make(
        url: String, gateway: any EtcdGateway, environment: Environment, executor: any SerialExecutor, key: HeldKey
    ) throws(RemoteError) -> any RemoteBackend {
        EtcdSealedBackend(
            EtcdClient(try EtcdURL(url), .nothing, gateway), environment, executor: executor, under: key)
    }

    init(
        _ client: EtcdClient, _ environment: Environment, executor: any SerialExecutor = ThreadExecutor(),
        limits: EtcdLimits = EtcdLimits(), budget: RemoteBudget = .shared
    ) {
        self.client = client
        self.environment = environment
        (self.executor, self.limits, share) = (executor, limits, budget.share())
        layout = EtcdLayout(client.url.prefix)
        watch = EtcdWatch(client, key: layout.account) { (try? EtcdAccount(decoding: $0.value))?.tokens.first }
        row = EtcdAccountRow(client, layout, environment, limits)
        reader = EtcdReader(client, layout, row, share)
    }

    /// What the backend costs. A change waits a little for others, since the cluster keeps every transaction until it
    /// is compacted. It reports changes while the watch is open.
    package nonisolated var traits: BackendTraits {
        BackendTraits(
            coalescing: .milliseconds(100), firstWait: .milliseconds(10), givesHints: watch.isLive)
    }

    /// Hints that another device has changed something.
    package nonisolated func hints() -> AsyncStream<Void> { watch.hints() }

    /// Ends hints and what is under way. Later calls fail.
    package func close() async {
        isClosed = true
        watch.close()
        client.close()
    }

    func checkOpen() throws(RemoteError) {
        if isClosed { throw RemoteError(.unavailable, "The account was closed.") }
    }

    // MARK: The account

    /// Makes this backend read the rows of an account that is moving to a key. Behind the fence no device changes them.
    func read(moving account: RemoteAccount) {
        let identifiers = account.aliases.union([account.identifier]).compactMap { Bits128($0) }
        // The token never changes, because the account's rows have no history after the fence.
        row.moving = EtcdAccount(Set(identifiers), token: 0)
    }

    /// Checks that the cluster can be used, and finds its account.
    package func open(creatingAccount createsAccount: Bool) async throws(RemoteError) -> RemoteAccount {
        try checkOpen()
        forget()
        if let present = try await row.find() { return enter(present) }
        guard createsAccount else { throw RemoteError(.noAccount, "There is no account here yet.") }
        let identifier = Bits128(high: environment.random(), low: environment.random())
        var account = enter(try await row.make(identifier))
        account.wasMade = true
        return account
    }

    /// Puts back an account's row that is gone from the remote.
    package func restore(_ account: String) async throws(RemoteError) -> RemoteAccount {
        try checkOpen()
        guard let identifier = Bits128(account) else {
            throw RemoteError(.unsupported, "The account has an identifier that no cluster can have.")
        }
        forget()
        memory.needsRepublication = true
        return enter(try await row.restore(identifier))
    }

    private func enter(_ position: EtcdPosition) -> RemoteAccount {
        row.enter(position)
        return position.account.remote
    }

    /// Forgets what was found in the cluster before.
    private func forget() {
        memory = EtcdMemory()
        row = EtcdAccountRow(client, layout, environment, limits)
        reader = EtcdReader(client, layout, row, share)
    }
}
