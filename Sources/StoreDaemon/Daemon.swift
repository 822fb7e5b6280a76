// SPDX-License-Identifier: Apache-2.0

// For malloc_trim and mallopt.
internal import CSystemd
internal import Glibc
internal import Logging
internal import ManagedDefaults
internal import PropertyList
internal import Replication
package import SDBus
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

/// The service: the stores and accounts of all users, on one bus.
@BusActor
package final class Daemon {
    /// What the parts of the service have instead of the daemon.
    let service: ServiceContext
    let connection: BusConnection
    let writes = WriteQueue()
    var configuration: Configuration { service.configuration }
    var logger: Logger { service.logger }
    var environment: Environment { service.environment }
    let manifests: ManifestDirectories
    let managed: ManagedDirectories
    let subordinates: SubordinateUsers
    let shares: UserShares
    let users: Users
    let clients: Clients
    private let callers = CallerExaminations()
    /// The thread for work on a user's whole data, which takes time in proportion to its size.
    let files = WorkThread(.disk)

    private let readConfiguration: @Sendable () throws -> Configuration
    private let lock: StateLock
    /// What the interface says that this service supports. It stays the same if the settings are read again.
    let features: [String]
    private var slots: [Slot] = []
    private var heldAllowance: HeldAllowance?
    private var signals: [EventSource] = []
    private var idleTimer: EventSource?
    private var trimTimer: EventSource?
    private var folderRootProblems: [String] = []
    private var folderRootTimer: EventSource?
    /// A thread of its own, because a folder root may be on a server that never answers.
    private let folderRoots = WorkThread(WorkPool(threads: 1))
    /// The last decision that was logged.
    private var lastIdleDecision: IdleDecision?
    private var isStopping = false
    private var callsUnderWay = 0

    /// Opens the bus and the state directory. Calls are not answered before ``serve()``.
    /// - Parameter renewed: reads the configuration again, for a reload.
    /// - Throws: `DaemonError`, with a sentence for the administrator, or the bus's error.
    package convenience init(
        _ configuration: Configuration, renewed: @escaping @Sendable () throws -> Configuration
    ) throws {
        try self.init(
            configuration,
            on: try BusConnection.open(
                configuration.bus, description: "ubiquitous-stored", leavingFilteringToBus: true),
            renewed: renewed)
    }

    /// Makes a service on a connection; tests pass one without a bus.
    init(
        _ configuration: Configuration, on connection: @autoclosure () throws -> BusConnection,
        renewed: @escaping @Sendable () throws -> Configuration
    ) throws {
        readConfiguration = renewed
        features = (configuration.allowedSchemes + ["encryption"]).sorted()
        // Large blocks go back to the system. By itself, malloc keeps twice the largest block that was ever freed.
        mallopt(M_MMAP_THRESHOLD, 4 << 20)
        lock = try StateLock(configuration.stateDirectory)
        manifests = ManifestDirectories(configuration.manifestDirectories, logger: configuration.logger)
        managed = ManagedDirectories(configuration.managedDirectories, logger: configuration.logger)
        let stateDirectory = configuration.stateDirectory
        subordinates = SubordinateUsers(configuration.subordinateUsersFile) {
            UserDirectory(of: $0, in: stateDirectory).exists
        }
        self.connection = try connection()
        service = ServiceContext(configuration, connection: self.connection, writes: writes)
        shares = UserShares(in: service)
        users = Users(in: service, sharing: shares, manifests: manifests, managed: managed)
        clients = Clients(
            of: users, in: service, sharing: shares, manifests: manifests, subordinates: subordinates)
        writes.onRefusal = { [unowned self] in service.logRefusedWrite($0, of: $1) }
        users.forgetPaths = { [unowned self] in clients.forgetPaths(of: $0) }
        users.onSignOut = { [unowned self] in armIdleTimer() }
    }

    /// Takes the service's name, then answers calls and syncs accounts until the process ends.
    /// - Throws: the error, if the name or an object can't be registered.
    package func serve() async throws {
        try register()
        connection.onDisconnect = { self.end("The connection to the bus was lost.", code: 1) }
        connection.names.onLost = { self.end("The service's name was lost.", code: 1) }
        manifests.onChange = { self.manifestsChanged($0) }
        managed.onChange = { self.managedSettingsChanged($0) }
        signals = [
            EventLoop.shared.onSignal(SIGTERM) { self.stop() },
            EventLoop.shared.onSignal(SIGINT) { self.stop() },
            // `reload()` logs what is wrong.
            EventLoop.shared.onSignal(SIGHUP) { try? self.reload() },
        ]
        EventLoop.shared.enableWatchdog()
        WorkPool.retry { again in
            EventLoop.task {
                await EventLoop.pause(.seconds(1))
                again()
            }
        }
        files.run { [directory = configuration.stateDirectory] in RemovedData.finish(in: directory) }
        await holdAllowance()
        // A process that has ended but for its files is still connected, and would keep the name. Only the service's user
        // may have the name on the system bus, so nobody else can take it away.
        try await connection.names.request(BusNames.service, mayBeReplaced: configuration.mode == .system) {
            $0.pid.map(ProcessMark.hasEnded) ?? false
        }
        // Not before: a process that doesn't get the name ends, and must not count as one that died during a cycle.
        users.resumeAccounts()
        notifyServiceManager("READY=1\nSTATUS=\(Self.status(configuration.settingsErrors))")
        logger.notice("ubiquitous-stored \(configuration.version) is serving.")
        for error in configuration.settingsErrors { logger.error("\(error) The other settings are in force.") }
        checkFolderRoots()
        armIdleTimer()
    }

    /// What an administrator has provided and the service can't use, in sentences.
    var warnings: [String] { folderRootProblems + managed.warnings + manifests.problems }

    /// Finds out on another thread which folder roots can't be used.
    private func checkFolderRoots() {
        EventLoop.task { [self, check = configuration.checkFolderRoots] in
            let problems = await folderRoots.result(of: check)
            for problem in problems where !folderRootProblems.contains(problem) { logger.error("\(problem)") }
            folderRootProblems = problems
            // A root may be on a drive that comes later.
            folderRootTimer =
                problems.isEmpty
                ? nil
                : EventLoop.shared.after(.seconds(60), accuracy: .seconds(5)) { self.checkFolderRoots() }
        }
    }

    /// Bounds how much data for the service others can make the bus hold, if the service has a user of its own.
    private func holdAllowance() async {
        guard configuration.mode == .system else { return }
        // What is left allows a few callers the largest layer or store each, while others fill their share.
        let largest = max(configuration.limits.totalBytes, configuration.layerLimits.totalBytes)
        heldAllowance = await connection.holdAllowance(leaving: 8 * largest)
        guard let heldAllowance else { return }
        logger.info("\(heldAllowance.bytes >> 20) MiB of the service's allowance at the bus are held.")
    }

    /// Begins to answer calls.
    func register() throws {
        try admitCalls()
        let clients = clients
        slots = [
            try connection.register(Daemon.interface(self), at: BusNames.managerPath, self),
            try connection.register(Daemon.administration(self), at: BusNames.managerPath, self),
            try connection.register(UserAccount.interface(self), under: BusNames.usersPath) { path, peer in
                clients.findAccount(at: path, for: peer)
            },
            try connection.register(UserStore.interface(self), under: BusNames.usersPath) { path, peer in
                try clients.findStore(at: path, for: peer)
            },
            try connection.enumerate(under: BusNames.usersPath) { prefix, peer in
                clients.children(of: prefix, for: peer)
            },
            try connection.register(UserDomains.interface(self), under: BusNames.defaultsRoot) { path, peer in
                clients.findDomains(at: path, for: peer)
            },
            try connection.register(UserStore.domainInterface(self), under: BusNames.defaultsRoot) { path, peer in
                clients.findLayer(at: path, for: peer)
            },
            try connection.enumerate(under: BusNames.defaultsRoot) { prefix, peer in
                clients.domainChildren(of: prefix, for: peer)
            },
        ]
    }

    /// Has the clients admit each call, and count what it costs.
    private func admitCalls() throws {
        // These closures and the daemon retain each other. The daemon lives as long as the process, and weak references
        // would slow down every use of it.
        let (clients, turns, connection, writes) = (clients, shares.turns, connection, writes)
        connection.afterDispatch = {
            writes.commit()
            if connection.isDrained { turns.noteDrained() }
        }
        connection.onSent = { clients.noteSent($1, to: $0) }
        turns.ask = { connection.askBus(then: $0) }
        connection.peers.onVanished = { self.peerVanished($0) }
        connection.peers.examine = { [self] credentials, done in
            // These are refused, whatever they are.
            if subordinates.range(of: credentials.uid) != nil { return done(.success(nil)) }
            callers.examine(credentials, done)
        }
        try connection.admitCalls(
            { clients.admit($0) }, ifUnanswered: { clients.acceptsCallsWithoutReply($0) },
            noteUnanswered: { clients.logUnanswered($0) },
            takeMemory: { ServiceMemory.shared.take($0, besides: $1) })
        connection.onDispatched = { clients.note($1, of: $0) }
        connection.admitLargeAnswer = { clients.admit($0, answering: $1) }
    }

    // MARK: Events

    /// Reads the settings and the manifests again. If the settings are wrong, those in force stay.
    /// - Throws: `BusError`, which says what is wrong with the settings.
    func reload() throws {
        notifyServiceManager("RELOADING=1")
        defer { notifyServiceManager("READY=1\nSTATUS=\(Self.status(configuration.settingsErrors))") }
        manifests.read()
        managed.read()
        let next = Result { try readConfiguration() }
        let errors: [String] =
            switch next {
            case .success(let next): next.settingsErrors
            case .failure(let error): ["\(error)"]
            }
        if let error = errors.first {
            note(settingsErrors: errors)
            logger.error("The settings stay as they were: \(error)")
            throw BusError(
                name: "org.freedesktop.DBus.Error.InvalidFileContent",
                message: "The settings stay as they were: \(error)")
        }
        apply(try next.get())
        logger.notice("The settings and the manifests were read again.")
    }

    private static func status(_ settingsErrors: [String]) -> String {
        settingsErrors.first.map { "Serving, with invalid settings: \($0)" } ?? "Serving."
    }

    private func note(settingsErrors: [String]) {
        var present = configuration
        present.settingsErrors = settingsErrors
        service.renew(present)
    }

    private func apply(_ next: Configuration) {
        let (limits, layerLimits) = (configuration.limits, configuration.layerLimits)
        var present = next
        (present.limits, present.layerLimits) = (limits, layerLimits)
        service.renew(present)
        if (next.limits, next.layerLimits) != (limits, layerLimits) {
            logger.notice(
                """
                Changed limits of stores and domains take effect when the service next starts, because clients treat them as \
                constants.
                """)
        }
        (manifests.logger, managed.logger) = (next.logger, next.logger)
        checkFolderRoots()
        shares.apply(next.bounds)
        for user in users.all { user.renewConfiguration() }
        armIdleTimer()
    }

    private func manifestsChanged(_ former: ManifestSet) {
        clients.forgetPaths()
        for user in users.all { user.localKeys.renew() }
        let changes = manifests.manifests.roamingDifference(from: former)
            .mapValues { ChangedKeys(Set($0.map(Key.init(unchecked:)))) }
        if changes.isEmpty { return }
        notifyOfManagedChanges { layer, _ in layer.layer.flatMap { changes[$0.domain] } ?? ChangedKeys([]) }
    }

    private func managedSettingsChanged(_ former: ManagedSettings) {
        let changes = ManagedChanges(from: former, to: managed.settings)
        notifyOfManagedChanges { changes.keys(of: $0, for: $1) }
    }

    /// Notifies the subscribers of domains in which managed settings, or which keys roam, have changed.
    private func notifyOfManagedChanges(_ keys: @escaping @BusActor (UserStore, Peer) -> ChangedKeys) {
        let layers = users.all.flatMap(\.storesInUse).filter { $0.layer?.isHost == false }
        EventLoop.task {
            let slices = Slices(of: .service)
            for layer in layers {
                layer.notifyEach(.managedChange) { keys(layer, $0) }
                await slices.pauseIfDue()
            }
        }
    }

    private func peerVanished(_ peer: Peer) {
        clients.left(peer)
        users.closeIdle()
        trimSoon()
        armIdleTimer()
    }

    /// Returns memory to the system: that of answers to clients that have left may be anywhere in the heap, and free()
    /// returns only what is at its end. Not for each client, because it takes long.
    private func trimSoon() {
        if trimTimer != nil { return }
        trimTimer = EventLoop.shared.after(.seconds(1), accuracy: .milliseconds(500)) {
            self.trimTimer = nil
            malloc_trim(0)
        }
    }

    // MARK: Ending

    /// Ends the service once it has been idle for the configured time. The bus starts it again with the next call.
    func armIdleTimer() {
        idleTimer = nil
        guard let delay = configuration.idleExit, !isStopping, isIdle else { return }
        idleTimer = EventLoop.shared.after(delay, accuracy: .seconds(1)) {
            EventLoop.task { await self.endWhenIdle(delay) }
        }
    }

    private func endWhenIdle(_ delay: Duration) async {
        let isActivatable = await connection.names.isActivatable(BusNames.service)
        guard isIdle else { return }
        if holdsCalls { return armIdleTimer() }
        let decision = IdleDecision(isActivatable: isActivatable, isAskedFor: configuration.isIdleExitAskedFor)
        if decision != lastIdleDecision { logger.log(level: decision.level, "\(decision.sentence(after: delay))") }
        lastIdleDecision = decision
        if decision != .stay { stop() }
    }

    /// Whether first calls of connections are held, or others wait for their user's turn.
    private var holdsCalls: Bool { connection.holdsCalls || !shares.turns.isIdle }

    private var isIdle: Bool { clients.isEmpty && !users.hasAccount && callsUnderWay == 0 }

    /// Counts a call that is answered later. The service doesn't end before that.
    func callBegins() {
        callsUnderWay += 1
    }

    /// Counts the end of a call that was answered later.
    func callEnds() {
        callsUnderWay -= 1
        guard callsUnderWay == 0 else { return }
        armIdleTimer()
    }

    /// Waits for the calls under way, but at most 5 s, so that the service manager doesn't kill the service.
    private func callsEnd() async {
        let end = EventLoop.now + 5_000_000
        while callsUnderWay > 0 || holdsCalls, EventLoop.now < end {
            await EventLoop.pause(.milliseconds(1))
        }
    }

    private func stop() {
        if isStopping { return }
        isStopping = true
        notifyServiceManager("STOPPING=1")
        EventLoop.task { [self] in
            // Calls that came before the name was released are still answered.
            try? await connection.names.release(BusNames.service)
            writes.commit()
            shares.endRests()
            await callsEnd()
            users.close()
            connection.flush()
            leave(code: 0)
        }
    }

    private func end(_ reason: String, code: Int32) {
        if isStopping { return }
        isStopping = true
        logger.error("\(reason)")
        writes.commit()
        users.close()
        leave(code: code)
    }

    /// Ends the process. A thread that waits for a folder's file system can't be ended, and would keep everything open
    /// that isn't closed here.
    private func leave(code: Int32) {
        // A thread that still writes to the directory ends with the process. Until then, nobody else may.
        if WorkPool.disk.isAtRest { lock.release() }
        connection.close()
        EventLoop.shared.exit(code)
    }
}

/// The reason why the service can't start, as a sentence for the administrator.
package struct DaemonError: Error, CustomStringConvertible {
    /// The sentence.
    package let description: String

    /// Makes an error from a sentence.
    package init(_ description: String) {
        self.description = description
    }
}
