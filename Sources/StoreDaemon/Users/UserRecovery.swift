// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import Replication
internal import SDBus
internal import StoreEngine
internal import SyncEngine

/// Opens a user's database, and replaces it once it proves damaged.
///
/// If that fails, for example on a full disk, whatever needs the database fails too and tries it again. If nothing
/// does, a timer does.
@BusActor
final class UserRecovery {
    private unowned let user: User
    private let service: ServiceContext
    private let shares: UserShares
    /// Whether the file of a damaged database is still to be set aside.
    private var needsSettingAside = false
    private var pace = Pace()
    /// When a database that seemed to be damaged was opened again, by the loop's clock.
    private var reopenings: [UInt64] = []
    /// Tries again if no call does.
    private var timer: EventSource?

    private var time: UInt64 { service.environment.time() }
    private var path: String { user.directory.path }

    /// - Parameter shares: count the work with a database.
    init(of user: User, in service: ServiceContext, countingIn shares: UserShares) {
        self.user = user
        self.service = service
        self.shares = shares
    }

    /// How often a database is opened again within an interval in microseconds, although it seemed to be damaged.
    private static let (mostReopenings, doubtInterval): (Int, UInt64) = (5, 600_000_000)

    /// Runs a piece of work with the database. If the database proves damaged, replaces it and tries once more.
    func retrying<T>(_ body: () throws -> T) throws -> T {
        do { return try body() } catch EngineError.corrupt(let reason) {
            try replaceDatabase(reason)
            return try body()
        }
    }

    /// Sets a damaged database aside and switches to a new one, or to the file that has replaced it.
    /// - Parameter reason: what is wrong with it.
    /// - Throws: `EngineError.corrupt` if that was just tried, or why it failed.
    func replaceDatabase(_ reason: String) throws {
        // Waiting writes fail, because they were staged in the damaged database.
        let damaged = user.database
        service.writes.commit()
        guard damaged === user.database else { return }
        guard pace.isDue else { throw EngineError.corrupt(reason) }
        if !damaged.isAbandoned {
            service.logger.error("The database of \(UserName.text(of: user.uid)) is damaged (\(reason)).")
            needsSettingAside = damaged.isInPlace
            damaged.abandon(reason)
        }
        do { try pace.run { try switchDatabase(isSalvaged: try setAsideIfNeeded(reason)) } } catch {
            // Each call tries again, and would say the same.
            if timer == nil {
                service.logger.error(
                    """
                    The database of \(UserName.text(of: user.uid)) can't be replaced yet: \
                    \(BusError(mapping: error).message)
                    """)
            }
            timer = EventLoop.shared.after(.seconds(60)) { [unowned self] in try? replaceDatabase(reason) }
            throw error
        }
        timer = nil
    }

    /// Ends the attempts to replace a database.
    func stop() { timer = nil }

    // MARK: Setting aside

    /// Sets the database's file aside, unless another is in its place already, such as a restored backup, or only a
    /// read of it has failed.
    /// - Returns: whether there is a new one, with what could be read of the damaged one.
    private func setAsideIfNeeded(_ reason: String) throws -> Bool {
        let isSalvaged = try DeathRecord(of: .opening, in: path).run {
            guard try needsSettingAside && isDamageConfirmed(reason) else { return false }
            try Self.setAside(in: path, at: time, service.logger)
            return true
        }
        needsSettingAside = false
        return isSalvaged
    }

    /// Whether the file is damaged, and not only a read of it failed. Damage that the check of the structure doesn't find
    /// shows again and again.
    private func isDamageConfirmed(_ reason: String) throws -> Bool {
        try ClosedDatabase(in: path).checkDisk(at: time)
        if reason == EngineError.wrongColumn { return true }
        if try ClosedDatabase(in: path).damage() != nil { return true }
        let now = EventLoop.now
        reopenings.removeAll { now - $0 >= Self.doubtInterval }
        reopenings.append(now)
        return reopenings.count > Self.mostReopenings
    }

    /// Sets a damaged database aside, and makes a new one with what can be read of it.
    /// - Parameter time: the present time, in microseconds since 1970.
    nonisolated static func setAside(in directory: String, at time: UInt64, _ logger: Logger) throws {
        // The database may be too damaged to say whose values it had.
        let account = (try? AccountFile.read(in: directory))?.account
        let report = try ClosedDatabase(in: directory).setAside(
            at: time, account: account, isSignedIn: AccountFile.exists(in: directory))
        guard let fileName = report.fileName else {
            logger.error(
                """
                A new database was made in \(directory), as nothing was left of the old one. What an account has \
                comes back from its remote. If something is missing, restore a backup.
                """)
            return
        }
        logger.error(
            """
            The damaged database was set aside as \(fileName), with \(report.salvagedValues) values saved from it. \
            What an account has comes back from its remote. Keep the file until you are sure that nothing is missing.
            """)
    }

    // MARK: Switching

    /// Switches to the database that is in the directory now.
    /// - Parameter isSalvaged: whether it has what could be read of the damaged one. If not, subscribers are told what
    ///   is different.
    private func switchDatabase(isSalvaged: Bool) throws {
        try user.readDirectoryAgain()
        let next = try Self.openDatabase(of: user.uid, in: user.directory, service, shares)
        var changes: [(UserStore, StoreViewChange)] = []
        do {
            let stores = user.storesInUse
            let known = stores.map(\.store.generation).max() ?? 0
            if !isSalvaged { try next.raiseGenerations(above: known) }
            for held in stores {
                let store = try next.store(held.identifier, localKeys: user.localKeys.keys(of: held.identifier))
                try user.localKeys.keepValues(of: store)
                changes.append((held, StoreViewChange(store: store, since: held.store.values)))
            }
            try user.replace(database: next)
            for (held, change) in changes { held.replace(change.store) }
        } catch {
            next.close()
            throw error
        }
        user.room.measureAgain()
        user.account.sync.pace = service.configuration.pace
        if isSalvaged { return }
        for (held, change) in changes where !change.keys.isEmpty {
            held.notify(held.layer == nil ? .accountChange : .localChange, keys: change.keys)
        }
    }

    // MARK: Opening

    /// Opens a user's database, unless the process died in that again and again. If it is damaged, it is set aside, and a
    /// new one is made.
    /// - Parameter shares: count the work with it.
    static func openDatabase(
        of uid: UInt32, in directory: UserDirectory, _ service: ServiceContext, _ shares: UserShares
    ) throws -> UserDatabase {
        let record = DeathRecord(of: .opening, in: directory.path)
        if record.isOfLastProcess {
            service.logger.error(
                "The service ended unexpectedly when it last opened the data of \(UserName.text(of: uid)).")
        }
        return try record.run { try openOrReplace(of: uid, in: directory, service, shares) }
    }

    private static func openOrReplace(
        of uid: UInt32, in directory: UserDirectory, _ service: ServiceContext, _ shares: UserShares
    ) throws -> UserDatabase {
        func open() throws -> UserDatabase {
            let configuration = service.configuration
            let database = try UserDatabase(
                in: directory.path, runtimeDirectory: configuration.runtimeDirectory, limits: configuration.limits,
                layerLimits: configuration.layerLimits, environment: service.environment)
            database.observer = shares.observer(ofDataOf: uid)
            database.onRevert = { [unowned writes = service.writes] in writes.fail(of: uid, $0) }
            try database.space.bound(fileSize: configuration.bounds.largestDatabase)
            return database
        }
        do { return try open() } catch EngineError.corrupt {
            try ClosedDatabase(in: directory.path).checkDisk(at: service.environment.time())
        }
        // The disk returns everything now, which it may not have done before.
        do { return try open() } catch EngineError.corrupt(let reason) {
            // If it can't be set aside, each call tries again.
            service.logProblem("The database in \(directory.path) is damaged (\(reason)).", of: uid)
            try setAside(in: directory.path, at: service.environment.time(), service.logger)
            return try open()
        }
    }
}
