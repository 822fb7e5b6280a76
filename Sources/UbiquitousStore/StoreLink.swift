// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import StoreBus

/// Keeps a store's copy in step with the service: finds the service, passes its events to the copy, and carries out the
/// copy's actions.
///
/// It has a connection of its own. The service doesn't signal a connection's own writes to it, so two copies in one
/// process need two.
@BusActor
final class StoreLink {
    private typealias Opening = Task<Result<StoreObject, any Error>, Never>

    private let address: BusAddress
    /// Empty if only the service knows this program's store.
    private let identifier: String
    /// The store whose copy the link updates.
    weak var store: SharedStore?

    let accountWatch = AccountWatch()

    private var connection: ServiceConnection?
    private var match: Slot?
    /// The attempt to open the store's object, finished or not; `nil` while the service is known to be absent.
    private var opening: Opening?
    /// The number of the present attempt; results of earlier ones are ignored.
    private var attempt = 0
    private var retry: EventSource?
    private var failures = 0
    private var hasComplained = false
    private var isClosed = false

    nonisolated init(_ address: BusAddress, _ identifier: String) {
        self.address = address
        self.identifier = identifier
    }

    /// Returns the store's object, once the service has our subscription.
    ///
    /// - Throws: the reason why it can't be reached now; the link retries later.
    func object() async throws -> StoreObject {
        if isClosed { throw Self.closed }
        return try await (opening ?? open()).value.get()
    }

    /// Closes the connection permanently, also one that is being opened.
    func close() {
        isClosed = true
        attempt += 1
        // An attempt that is under way would otherwise wait for itself; see successor().
        opening = nil
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

    /// Waits for the attempt that has replaced the one a caller was waiting for.
    private func successor() async -> Result<StoreObject, any Error> {
        if let opening { return await opening.value }
        return .failure(Self.notRunning)
    }

    private func subscribe() async throws -> StoreObject {
        let connection = try await connected()
        let opened = try await connection.manager.openStore(identifier)
        let object = StoreObject(connection: connection, path: opened.path)
        match = try await object.onChange { [weak store] signal in
            // A reply that came before this signal resumes its task in a job. This is a job as well, so that the copy
            // receives both in the order in which they came.
            EventLoop.task { store?.tell { $0.received(signal) } }
        }
        try await object.subscribe(includingLocal: true)
        store?.noteIdentifier(opened.identifier)
        return object
    }

    private func connected() async throws -> ServiceConnection {
        if let connection, connection.isOpen { return connection }
        let connection = try await ServiceConnection.open(address, description: "UbiquitousStore")
        if isClosed {
            connection.close()
            throw Self.closed
        }
        connection.onOwnerChange = { [weak self] in self?.ownerChanged(from: $0) }
        connection.onDisconnect { [weak self] in
            self?.lose(UbiquitousStoreError(.serviceUnavailable, "The connection to the bus was lost."))
        }
        self.connection = connection
        return connection
    }

    private static let closed = UbiquitousStoreError(.serviceUnavailable, "The store is no longer in use.")
    private static let notRunning = UbiquitousStoreError(.serviceUnavailable, "The service is no longer running.")

    private func ownerChanged(from former: String?) {
        if connection?.owner == nil {
            lose(Self.notRunning)
        } else if former != nil || opening == nil {
            // Otherwise the waiting call has started the service.
            open()
        }
    }

    // MARK: Losing the service

    private func lose(_ error: any Error) {
        attempt += 1
        opening = nil
        match = nil
        complainOnce(error)
        store?.lose()
        if let error = error as? UbiquitousStoreError, Self.isLoss(error.code) { accountWatch.lose(error) }
        retryLater(error)
    }

    /// Logs, once, that the store stays closed until the developer or the user changes something. Apple's members don't
    /// throw, so the app may not know.
    private func complainOnce(_ error: any Error) {
        guard !hasComplained, let error = error as? UbiquitousStoreError, Self.isRefusal(error.code) else { return }
        hasComplained = true
        let store = identifier.isEmpty ? "The app's default store" : "The store \"\(identifier)\""
        let sentence = "\(store) can't be opened, and what the app writes is not stored. \(error.message)"
        UbiquitousStoreError(error.code, sentence).log()
    }

    /// Retries after 0.1 s, and then after twice as long each time, up to a minute.
    private func retryLater(_ error: any Error) {
        retry = nil
        if isForAnotherService(error) { return }
        // The service reads manifests again while it runs, so a refusal is not for ever.
        let isRefused = (error as? UbiquitousStoreError).map { Self.isRefusal($0.code) } ?? false
        let delay = Duration.milliseconds(isRefused ? 60_000 : min(60_000, 100 << min(failures, 10)))
        failures += 1
        retry = EventLoop.shared.after(delay, accuracy: delay / 4) { [weak self] in
            guard let self else { return }
            // This doesn't start a service only to be refused. One that appears is asked at once.
            if isRefused, connection?.isOpen == true, connection?.owner == nil { return }
            open()
        }
    }

    /// Whether nothing will change until another service appears, which the bus signals, so retrying is pointless.
    private func isForAnotherService(_ error: any Error) -> Bool {
        guard connection?.isOpen == true, let error = error as? UbiquitousStoreError else { return false }
        // The bus can't activate the service. If the name has an owner all the same, the service has started since, and
        // its signal came before this attempt failed, so another attempt is needed.
        return (error.cause as? BusError)?.name == "org.freedesktop.DBus.Error.ServiceUnknown"
            && connection?.owner == nil
    }

    /// Returns whether an app has no service after this error. After others, such as an overload, it has one again at
    /// the next attempt.
    private static func isLoss(_ code: UbiquitousStoreError.Code) -> Bool {
        isRefusal(code) || [.serviceUnavailable, .timedOut].contains(code)
    }

    /// Returns whether the service gives this answer until somebody changes something.
    private static func isRefusal(_ code: UbiquitousStoreError.Code) -> Bool {
        switch code {
        case .notEntitled, .identityUnknown, .ambiguousIdentity, .accessDenied, .unknownObject, .noSuchStore: true
        default: false
        }
    }

    // MARK: The copy's actions

    /// Requests what changed since a generation, and passes it to the copy.
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

    /// Sends the waiting writes.
    func send() async {
        guard let call = store?.nextCall() else { return }
        let attempt = attempt
        do {
            let late = call.since.map { (generation: $0, time: call.time) }
            let generation = try await object().apply(call.changes, late: late, timeout: .forever)
            guard attempt == self.attempt else { return }
            store?.tell { $0.acknowledged(generation) }
        } catch {
            if attempt == self.attempt { sendingFailed(error) }
        }
    }

    private func sendingFailed(_ error: any Error) {
        guard let error = error as? UbiquitousStoreError else { return lose(error) }
        switch error.code {
        case _ where error.isFinalRefusal:
            store?.tell { $0.refused(error) }
        case .serviceUnavailable, .timedOut:
            lose(error)
        default:
            store?.tell { $0.postponed(error) }
            lose(error)
        }
    }

    /// Makes the service write everything to disk, and brings the copy up to date.
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
    /// No timeout.
    static let forever = Duration.seconds(Int64.max)
}

extension UbiquitousStoreError {
    /// Whether the service will never take a write that it has answered with this error.
    package var isFinalRefusal: Bool {
        switch code {
        case .quotaExceeded, .invalidKey, .keyTooLong, .invalidValue, .depthExceeded, .invalidArguments, .conflict: true
        default: false
        }
    }
}
