// SPDX-License-Identifier: Apache-2.0

public import BackendSupport
internal import HTTPClient
internal import PlaceAddress
internal import PropertyList
public import Replication
package import Sealing

/// The backend for `etcds://HOST,HOST/PREFIX` and `etcd://HOST,HOST/PREFIX`: rows of an etcd cluster.
///
/// What all devices have is one state of each store, in rows. A device reads which of them have changed since it looked
/// last, and joins what it has to them in transactions.
public actor EtcdBackend: RemoteBackend {
    /// The kind of remote that it is.
    public static let descriptor = BackendDescriptor(.etcd) {
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
    /// What all accounts hold in memory has a bound.
    private let share: RemoteBudget.Share
    private let executor: any SerialExecutor

    /// What a cluster answers is read, and states are joined, on a thread that is there as long as there is something to
    /// do.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// A backend for an address. Nothing is asked before it is opened.
    /// - Throws: `RemoteError.unsupported` for an address that is none of an etcd cluster, and for credentials that are
    ///   none.
    public static func make(
        url: String, credentials: ServerCredentials, environment: Environment = .system
    ) throws(RemoteError) -> EtcdBackend {
        EtcdBackend(try EtcdClient(try EtcdURL(url), credentials), environment)
    }

    /// The backend for an account of which so much is known: rows for one in plain, and blobs for one that is encrypted,
    /// or is to be. Each of them finds out where the account is in the other form.
    static func make(
        _ client: EtcdClient, _ environment: Environment, protection: Protection
    ) -> any RemoteBackend {
        guard protection.isWanted else { return EtcdBackend(client, environment) }
        return EtcdSealedBackend(client, environment, protection)
    }

    /// Tries an address out, and leaves nothing behind.
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

    /// A backend that reaches its cluster in another way, and runs elsewhere: for a simulation.
    package static func make(
        url: String, gateway: any EtcdGateway, environment: Environment, executor: any SerialExecutor,
        limits: EtcdLimits
    ) throws(RemoteError) -> EtcdBackend {
        EtcdBackend(
            EtcdClient(try EtcdURL(url), .nothing, gateway), environment, executor: executor, limits: limits,
            budget: RemoteBudget())
    }

    /// The same for an encrypted account.
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

    /// A change waits a little for others, as every transaction is kept until the cluster is compacted. The cluster tells
    /// of changes as long as it is there.
    public nonisolated var traits: BackendTraits {
        BackendTraits(
            coalescing: .milliseconds(100), firstWait: .milliseconds(10), tellsOfChanges: watch.isLive)
    }

    /// Says "look now" when somebody else changed something.
    public nonisolated func hints() -> AsyncStream<Void> { watch.hints() }

    /// Ends hints and what is under way; calls that follow fail.
    public func close() async {
        isClosed = true
        watch.close()
        client.close()
    }

    func checkOpen() throws(RemoteError) {
        if isClosed { throw RemoteError(.unavailable, "The account was closed.") }
    }

    // MARK: The account

    /// Reads the rows of an account that is moving to a key, behind the fence where nobody changes them any more.
    func read(moving account: RemoteAccount) {
        let identifiers = account.aliases.union([account.identifier]).compactMap { Bits128($0) }
        // One token for all time: nothing of the account's history is after the fence.
        row.moving = EtcdAccount(Set(identifiers), token: 0)
    }

    /// Checks that the cluster can be used and finds its account.
    public func open(creatingAccount createsAccount: Bool) async throws(RemoteError) -> RemoteAccount {
        try checkOpen()
        forget()
        if let present = try await row.find() { return enter(present) }
        guard createsAccount else { throw RemoteError(.noAccount, "There is no account here yet.") }
        let identifier = Bits128(high: environment.random(), low: environment.random())
        return enter(try await row.make(identifier))
    }

    /// Puts an account's row into the place where it isn't there.
    public func restore(_ account: String) async throws(RemoteError) -> RemoteAccount {
        try checkOpen()
        guard let identifier = Bits128(account) else {
            throw RemoteError(.unsupported, "The account has an identifier that no cluster can have.")
        }
        forget()
        memory.isOwing = true
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
