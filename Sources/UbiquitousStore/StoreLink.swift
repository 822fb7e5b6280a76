// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import StoreBus

/// What keeps a store's copy like the service's: finds the service, tells the copy what comes from it, and does what
/// the copy asks for.
///
/// It has a connection of its own. The service doesn't tell a connection of its own writes, so two copies in one
/// process need two.
@BusActor
final class StoreLink {
    private typealias Opening = Task<Result<StoreObject, any Error>, Never>

    private let address: BusAddress
    /// Empty: the service knows which one is this program's.
    private let identifier: String
    /// Whose copy it is.
    weak var store: SharedStore?

    let accountWatch = AccountWatch()

    private var connection: ServiceConnection?
    private var match: Slot?
    /// The store's object, found or on its way; `nil` while the service is known not to be there.
    private var opening: Opening?
    /// What belongs to an earlier attempt is of no use any more.
    private var attempt = 0
    private var retry: EventSource?
    private var failures = 0

    nonisolated init(_ address: BusAddress, _ identifier: String) {
        self.address = address
        self.identifier = identifier
    }

    /// The store's object, once the service has our subscription.
    ///
    /// - Throws: why there is no way to it now; it is looked for again later.
    func object() async throws -> StoreObject {
        try await (opening ?? open()).value.get()
    }

    /// Ends the connection for good.
    func close() {
        attempt += 1
        retry = nil
        match = nil
        connection?.close()
        connection = nil
    }

    // MARK: Finding the service

    @discardableResult
    private func open() -> Opening {
        retry = nil
        attempt += 1
        let attempt = attempt
        let opening = EventLoop.task { await self.result(of: attempt) }
        self.opening = opening
        return opening
    }

    private func result(of attempt: Int) async -> Result<StoreObject, any Error> {
        do {
            let object = try await subscribe()
            guard attempt == self.attempt else { return await successor() }
            store?.tell { $0.linked() }
            EventLoop.task { await self.accountWatch.follow(object.connection) }
            return .success(object)
        } catch {
            guard attempt == self.attempt else { return await successor() }
            lose(error)
            return .failure(error)
        }
    }

    /// Somebody waits for an attempt that another one has taken the place of.
    private func successor() async -> Result<StoreObject, any Error> {
        if let opening { return await opening.value }
        return .failure(UbiquitousStoreError(.serviceUnavailable, "The service has gone"))
    }

    private func subscribe() async throws -> StoreObject {
        let connection = try await connected()
        let opened = try await connection.manager.openStore(identifier)
        let object = StoreObject(connection: connection, path: opened.path)
        match = try await object.onChange { [weak store] signal in
            // An answer that came before this resumes its task in a job. So that the copy hears of both in the order in
            // which they came, this is a job as well.
            EventLoop.task { store?.tell { $0.received(signal) } }
        }
        try await object.subscribe(includingLocal: true)
        store?.noteIdentifier(opened.identifier)
        return object
    }

    private func connected() async throws -> ServiceConnection {
        if let connection, connection.isOpen { return connection }
        let connection = try await ServiceConnection.open(address, description: "UbiquitousStore")
        connection.onOwnerChange = { [weak self] in self?.ownerChanged(from: $0) }
        connection.onDisconnect { [weak self] in
            self?.lose(UbiquitousStoreError(.serviceUnavailable, "The bus has gone"))
        }
        self.connection = connection
        return connection
    }

    private func ownerChanged(from former: String?) {
        if connection?.owner == nil {
            lose(UbiquitousStoreError(.serviceUnavailable, "The service has gone"))
        } else if former != nil || opening == nil {
            // Otherwise it has started because of the call that waits for it.
            open()
        }
    }

    // MARK: Losing it

    private func lose(_ error: any Error) {
        attempt += 1
        opening = nil
        match = nil
        store?.lose()
        retryLater(error)
    }

    /// Tries again after 0.1 s, and after twice as long each time, a minute at most.
    private func retryLater(_ error: any Error) {
        retry = nil
        if isForTheServiceToChange(error) { return }
        let delay = Duration.milliseconds(min(60_000, 100 << min(failures, 10)))
        failures += 1
        retry = EventLoop.shared.after(delay, accuracy: delay / 4) { [weak self] in self?.open() }
    }

    /// Whether nothing changes before another service is there: that is told, and needs no asking.
    private func isForTheServiceToChange(_ error: any Error) -> Bool {
        guard connection?.isOpen == true, let error = error as? UbiquitousStoreError else { return false }
        switch error.code {
        case .notEntitled, .identityUnknown, .ambiguousIdentity, .accessDenied, .unknownObject, .noSuchStore:
            return true
        default:
            // The bus doesn't know how to start it; unless it has started since the bus said so, which was told before
            // this attempt had learnt that it failed.
            return (error.cause as? BusError)?.name == "org.freedesktop.DBus.Error.ServiceUnknown"
                && connection?.owner == nil
        }
    }

    // MARK: What the copy asks for

    /// Asks for what changed since a generation, and tells the copy.
    func fetch(
        since generation: UInt64, _ event: @Sendable (inout LocalCopy, Snapshot) -> [LocalCopy.Action]
    ) async {
        let attempt = attempt
        do {
            let snapshot = try await object().snapshot(since: generation, timeout: .forever)
            guard attempt == self.attempt else { return }
            failures = 0
            store?.tell { event(&$0, snapshot) }
        } catch {
            if attempt == self.attempt { lose(error) }
        }
    }

    /// Sends what waits.
    func send() async {
        guard let call = store?.nextCall() else { return }
        let attempt = attempt
        do {
            let generation = try await object().apply(call, timeout: .forever)
            guard attempt == self.attempt else { return }
            store?.tell { $0.acknowledged(generation) }
        } catch {
            if attempt == self.attempt { sendingFailed(error) }
        }
    }

    private func sendingFailed(_ error: any Error) {
        guard let error = error as? UbiquitousStoreError else { return lose(error) }
        switch error.code {
        case .quotaExceeded, .invalidKey, .keyTooLong, .invalidValue, .depthExceeded, .invalidArguments, .conflict:
            store?.tell { $0.refused(error) }
        case .serviceUnavailable, .timedOut:
            lose(error)
        default:
            store?.tell { $0.postponed(error) }
            lose(error)
        }
    }

    /// Has what was written put on disk, and brings the copy up to date.
    func synchronize(waitingForRemote: Bool, timeout: Duration?) async throws -> Bool {
        let accepted = try await object().synchronize(waitingForRemote: waitingForRemote, timeout: timeout)
        try await refresh()
        return accepted
    }

    /// Brings the copy up to date.
    func refresh() async throws {
        let object = try await object()
        let attempt = attempt
        let snapshot = try await object.snapshot(since: store?.generation ?? 0)
        if attempt == self.attempt { store?.tell { $0.loaded(snapshot) } }
    }
}

extension Duration {
    /// No limit of time.
    static let forever = Duration.seconds(Int64.max)
}
