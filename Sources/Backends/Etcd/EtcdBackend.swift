// SPDX-License-Identifier: Apache-2.0

public import BackendSupport
internal import HTTPClient
internal import PropertyList
public import Replication

/// The backend for `etcds://HOST,HOST/PREFIX` and `etcd://HOST,HOST/PREFIX`: rows of an etcd cluster.
///
/// What all devices have is one state of each store, in rows. A device reads which of them have changed since it looked
/// last, and joins what it has to them in transactions.
public actor EtcdBackend: RemoteBackend {
    /// The kind of remote that it is.
    public static let descriptor = BackendDescriptor(schemes: ["etcds", "etcd"], example: "etcds://HOST/PREFIX") {
        site throws(RemoteError) in
        if site.isEncrypted {
            throw RemoteError(.unsupported, "An account on etcd can't be encrypted. Use a folder or a WebDAV server.")
        }
        return try EtcdBackend.make(url: site.url, credentials: site.credentials)
    } check: {
        await EtcdBackend.check(url: $0.url, credentials: $0.credentials)
    }

    nonisolated let client: EtcdClient
    nonisolated let layout: EtcdLayout
    nonisolated let watch: EtcdWatch
    let environment: Environment
    var memory = EtcdMemory()
    private var isClosed = false
    let limits: EtcdLimits
    /// What all accounts hold in memory has a bound.
    let share: RemoteBudget.Share
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

    /// Tries an address out, and leaves nothing behind.
    public static func check(
        url: String, credentials: ServerCredentials, environment: Environment = .system
    ) async -> [BackendCheck] {
        let client: EtcdClient
        do throws(RemoteError) { client = try EtcdClient(try EtcdURL(url), credentials) } catch {
            return [BackendCheck(step: "address", isPassed: false, detail: error.message)]
        }
        defer { client.close() }
        let address = BackendCheck(step: "address", isPassed: true, detail: client.url.warning ?? "")
        var probe = EtcdProbe(client, environment)
        await probe.run()
        return [address] + probe.checks
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

    init(
        _ client: EtcdClient, _ environment: Environment, executor: any SerialExecutor = ThreadExecutor(),
        limits: EtcdLimits = EtcdLimits(), budget: RemoteBudget = .shared
    ) {
        self.client = client
        self.environment = environment
        (self.executor, self.limits, share) = (executor, limits, budget.share())
        layout = EtcdLayout(client.url.prefix)
        watch = EtcdWatch(client, key: layout.account)
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

    /// Checks that the cluster can be used and finds its account.
    public func open(creatingAccount createsAccount: Bool) async throws(RemoteError) -> RemoteAccount {
        try checkOpen()
        memory = EtcdMemory()
        if let present = try await position() { return enter(present) }
        guard createsAccount else { throw RemoteError(.noAccount, "There is no account here yet.") }
        let identifier = Bits128(high: environment.random(), low: environment.random())
        let position = try await make(identifier)
        return enter(position)
    }

    /// Puts an account's row into the place where it isn't there.
    public func restore(_ account: String) async throws(RemoteError) -> RemoteAccount {
        try checkOpen()
        guard let identifier = Bits128(account) else {
            throw RemoteError(.unsupported, "The account has an identifier that no cluster can have.")
        }
        memory = EtcdMemory()
        memory.isOwing = true
        let present = try await position()
        var position = if let present { present } else { try await make(identifier) }
        for _ in 0..<EtcdPublishing.mostAttempts where !position.account.identifiers.contains(identifier) {
            position = try await add(identifier, to: position)
        }
        return enter(position)
    }

    private func enter(_ position: EtcdPosition) -> RemoteAccount {
        memory.identifiers = position.account.identifiers
        return position.account.remote
    }

    /// Makes the account, or finds that somebody else has.
    private func make(_ identifier: Bits128) async throws(RemoteError) -> EtcdPosition {
        let account = EtcdAccount([identifier], token: environment.random())
        let outcome = try await client.commit(
            EtcdTransaction(
                conditions: [.isMissing(layout.account)], operations: [.put(layout.account, account.encoded)],
                otherwise: [.range(EtcdRange(layout.account))]))
        if outcome.isDone { return EtcdPosition(account, outcome.revision) }
        guard let position = try self.position(outcome.found.first, outcome.revision) else {
            throw RemoteError(.unavailable, "The account was made and removed in one moment.")
        }
        return position
    }

    private func add(_ identifier: Bits128, to position: EtcdPosition) async throws(RemoteError) -> EtcdPosition {
        var account = position.account
        account.identifiers.insert(identifier)
        account.add(environment.random(), keeping: limits.tokens)
        let outcome = try await client.commit(
            EtcdTransaction(
                conditions: [.value(layout.account, is: position.row)],
                operations: [.put(layout.account, account.encoded)], otherwise: [.range(EtcdRange(layout.account))]))
        if outcome.isDone { return EtcdPosition(account, outcome.revision) }
        if let present = try self.position(outcome.found.first, outcome.revision) { return present }
        return try await make(identifier)
    }

    /// Where the account stands now; `nil` if there is none.
    func position() async throws(RemoteError) -> EtcdPosition? {
        let (rows, revision) = try await client.range(EtcdRange(layout.account))
        return try position(rows, revision)
    }

    /// The account's row as a range found it.
    func position(_ rows: EtcdRows?, _ revision: Int64) throws(RemoteError) -> EtcdPosition? {
        guard let row = rows?.rows.first else { return nil }
        do throws(EtcdFlaw) {
            // Others' transactions count, too, and a cluster that was restored from a copy may have lost some of theirs,
            // and none of this account's: what is written then has revisions that there were before.
            let revision = Rule.accountRevision.isOn ? row.modified : revision
            return EtcdPosition(try EtcdAccount(decoding: row.value), revision)
        } catch {
            if error.isTooNew { throw .tooNew }
            throw RemoteError(.damaged, "The row that says which account is here makes no sense.")
        }
    }

    /// An account's row as a range found it, which is to be that of the account that was opened.
    func presentPosition(_ rows: EtcdRows?, _ revision: Int64) throws(RemoteError) -> EtcdPosition {
        guard let position = try self.position(rows, revision) else {
            throw RemoteError(.reset, "The account that was here is gone.")
        }
        if !memory.identifiers.isEmpty, memory.identifiers.isDisjoint(with: position.account.identifiers) {
            throw RemoteError(.reset, "There is another account here than before.")
        }
        memory.identifiers.formUnion(position.account.identifiers)
        return position
    }
}

/// What a backend remembers as long as it lives.
struct EtcdMemory {
    /// The identifiers of the account.
    var identifiers: Set<Bits128> = []
    /// Up to where this device has joined everything, or written it itself.
    var joined: EtcdPosition?
    /// What the cluster has then of each store, as far as it is known.
    var outlines = EtcdOutlines()
    /// The cursor that ``joined`` goes on from.
    var cursor: [UInt8]?
    /// Under which that was joined.
    var origin: Origin?
    /// This device has to publish all that it has.
    var isOwing = false

    /// Who publishes, once it was read.
    var devices: [Origin: EtcdDevice]?
    /// So many entries are asked for at once.
    private(set) var pageLimit = 1024

    /// The last publications of this process, and the one that its first look found where nothing else is known.
    private var ownPublications: [(device: EtcdDevice, origin: Origin)] = []
    /// By the origins under whose name a pull has looked: the publications up to this count are of processes before this
    /// one, or too old to be among ``ownPublications``.
    private var inherited: [Origin: UInt64] = [:]

    /// Asks for fewer entries at once, since that many are more than a member passes on.
    /// - Returns: whether there are fewer.
    mutating func halvePages() -> Bool {
        guard pageLimit > 1 else { return false }
        pageLimit /= 2
        return true
    }

    /// What became of the publication under an origin, by its row. What was published is joined, and stays if somebody
    /// removes the row.
    /// - Parameter count: how often the database says that something was about to be published under the origin; 0 if
    ///   that is not known.
    mutating func look(
        at device: EtcdDevice?, under origin: Origin, published count: UInt64
    ) -> OwnPublication {
        if !hasLooked(under: origin) {
            inherited[origin] = count
            if let device, count == 0 { note(device, under: origin) }
        }
        guard let device else { return isOwing ? .missing : .asPublished }
        if !isOwn(device, under: origin) { return .foreign }
        return isOwing ? .missing : .asPublished
    }

    func hasLooked(under origin: Origin) -> Bool { inherited[origin] != nil }

    /// Whether this device has written a row under an origin. Processes before this one may have: a row of theirs
    /// arrives late, or comes back with a cluster that is restored from a copy.
    func isOwn(_ device: EtcdDevice, under origin: Origin) -> Bool {
        if ownPublications.contains(where: { $0.device.publication == device.publication }) { return true }
        return device.count > 0 && device.count <= inherited[origin, default: 0]
    }

    /// Remembers a publication that is about to be made, since its answer may be lost.
    mutating func note(_ device: EtcdDevice, under origin: Origin) {
        ownPublications.append((device, origin))
        guard ownPublications.count > Self.mostPublications else { return }
        let (oldest, former) = ownPublications.removeFirst()
        if let count = inherited[former] { inherited[former] = max(count, oldest.count) }
    }

    private static let mostPublications = 1024
}

/// A state of the account's row. Equal rows are the same moment of one history.
struct EtcdPosition: Equatable {
    let account: EtcdAccount
    /// The revision of the cluster that made it so.
    let revision: Int64

    init(_ account: EtcdAccount, _ revision: Int64) { (self.account, self.revision) = (account, revision) }

    var row: [UInt8] { account.encoded }
    var token: UInt64 { account.tokens.first ?? 0 }
}

extension EtcdAccount {
    /// The account as it is known elsewhere: a new one has seen no transaction but the one that made it.
    var remote: RemoteAccount {
        let sorted = identifiers.sorted()
        return RemoteAccount(
            identifier: sorted.first?.description ?? "", aliases: Set(sorted.dropFirst().map(\.description)),
            isNew: tokens.count == 1)
    }
}
