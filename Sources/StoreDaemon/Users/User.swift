// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Logging
internal import PropertyList
internal import Replication
internal import SDBus
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

/// A user's data while the service has it open: the database, the account, and the stores in use.
@BusActor
final class User {
    let uid: UInt32
    let directory: UserDirectory
    let account: UserAccount
    private(set) var database: UserDatabase
    private unowned let users: Users
    private let service: ServiceContext
    private let sharedRoom: SharedRoom
    private var stores: [Text: UserStore] = [:]
    /// About the memory that the stores in use take, in bytes.
    private(set) var memory = 0 { didSet { sharedRoom.memory.count(memory - oldValue) } }
    /// The room for the user's data in the database and on the disk.
    private(set) lazy var room = UserRoom(of: self, sharing: sharedRoom, in: service)
    /// What replaces a damaged database.
    private(set) lazy var recovery = UserRecovery(of: self, in: service, countingIn: users.shares)
    /// The manifests that the user's apps have registered.
    private(set) var registered: RegisteredManifests
    /// The keys of stores that never leave the device.
    let localKeys: UserLocalKeys
    /// The user's defaults domains.
    private(set) lazy var domains = UserDomains(of: self, in: service, managed: users.managed)

    /// Opens the user's data. A damaged database is set aside.
    init(_ uid: UInt32, among users: Users, in service: ServiceContext) throws {
        self.uid = uid
        self.users = users
        self.service = service
        sharedRoom = users.room
        directory = UserDirectory(of: uid, in: service.configuration.stateDirectory)
        try directory.prepare(for: directory.owner, logger: service.logger, time: service.environment.time())
        database = try UserRecovery.openDatabase(of: uid, in: directory, service, users.shares)
        sharedRoom.follow(database, in: directory)
        registered = RegisteredManifests(of: directory, logger: service.logger)
        do { localKeys = try UserLocalKeys(in: directory, service: service) } catch {
            database.close()
            throw error
        }
        account = try UserAccount(
            uid, database: database, directory: directory.path, in: service, reports: Self.makeReports(of: uid, users))
        account.sync.pace = service.configuration.pace
        account.sync.circumstances = users.circumstances(of: uid)
        localKeys.user = self
        account.start(for: self)
    }

    /// Passes on what the rest of the service has to know of a user's account.
    private static func makeReports(of uid: UInt32, _ users: Users) -> UserAccount.Reports {
        UserAccount.Reports(
            stateChanged: { users.noteAccount(isSignedIn: $0) }, signedOut: { users.onSignOut() },
            busy: { users.shares.share(of: .user(uid)).rest.note($0) })
    }

    /// Applies a reloaded configuration.
    func renewConfiguration() {
        let configuration = service.configuration
        room.measureAgain()
        account.sync.pace = configuration.pace
        if !account.sync.isSignedIn {
            account.sync.devices.own = RemoteDevice(
                identifier: account.deviceIdentifier, name: configuration.deviceName)
        }
        account.startIfFailed()
        do { try database.space.bound(fileSize: configuration.bounds.largestDatabase) } catch {
            service.logger.error("The size of the database of \(UserName.text(of: uid)) can't be bounded: \(error)")
        }
    }

    /// Reads again what apps have registered and which keys never leave the device, because the directory may have been
    /// replaced.
    func readDirectoryAgain() throws {
        try directory.prepare(for: directory.owner, logger: service.logger, time: service.environment.time())
        registered = RegisteredManifests(of: directory, logger: service.logger)
        try localKeys.readAgain(in: directory)
    }

    /// Switches to a database in place of a damaged one. The stores in use are still those of the former one.
    func replace(database next: UserDatabase) throws {
        sharedRoom.follow(next, in: directory)
        try account.replace(database: next)
        database = next
    }

    // MARK: Stores

    /// The manifests that apply to the user.
    var manifests: UserManifests { users.manifests(with: registered) }

    /// Returns a store, loaded if necessary. The caller must hold it at once (see ``UserStore/hold()``).
    func store(_ identifier: String) throws -> UserStore {
        localKeys.retry()
        if let store = stores[Text(identifier)] { return store }
        localKeys.prepare(identifier)
        let store = try recovery.retrying {
            let store = try database.store(identifier, localKeys: localKeys.keys(of: identifier))
            if store.isForgotten {
                try database.remember(store: store)
                account.sync.noteHint()
            }
            try localKeys.keepValues(of: store)
            return try UserStore(store, of: self, on: service.connection)
        }
        localKeys.apply(to: store.store)
        try makeRoom(for: store.memory)
        stores[Text(identifier)] = store
        store.isInUse = true
        memory += store.memory
        return store
    }

    /// Throws if the stores in use would take too much memory. First, those are released that clients have only used
    /// before.
    /// - Parameter bytes: what they would take besides, because a store is loaded or values are written.
    func makeRoom(for bytes: Int) throws {
        let total = sharedRoom.memory
        if total.allows(bytes, besides: memory) { return }
        // What is counted may have been removed or replaced by now, also with other users.
        measureStores()
        if total.allows(bytes, besides: memory) { return }
        users.measureStores()
        if total.allows(bytes, besides: memory) { return }
        service.writes.commit()
        users.forgetPaths(uid)
        if total.allows(bytes, besides: memory) { return }
        throw SharedBound(
            error: .limitsExceeded(
                """
                The values in the user's stores and domains in use take \(memory) bytes of memory, and there is no room \
                for \(bytes) more. End programs that use large values, and keep large data in files.
                """),
            toApps: .limitsExceeded(
                "There is no room in memory for \(bytes) bytes more. Keep large data in files."))
    }

    func measureStores() {
        for store in stores.values { store.measure() }
    }

    /// Notes that a store in use takes more memory, or less.
    func noteMemory(grownBy bytes: Int) { memory += bytes }

    /// The stores in use.
    var storesInUse: [UserStore] { Array(stores.values) }

    /// Returns a store if it is in use.
    func storeInUse(_ identifier: String) -> UserStore? { stores[Text(identifier)] }

    /// Releases a store that is no longer in use.
    func letGo(_ store: UserStore) {
        guard store.isInUse else { return }
        store.isInUse = false
        stores[Text(store.identifier)] = nil
        memory -= store.memory
    }

    /// Returns the identifiers of the apps' stores that hold entries, be they only tombstones; sorted.
    func storeIdentifiers() throws -> [String] {
        try recovery.retrying { try database.storeIdentifiers() }.filter(Manifest.isName)
    }

    /// Returns the identifiers of the apps' stores that hold values, sorted.
    func storesWithValues() throws -> [String] {
        try recovery.retrying { try database.summaries.storesWithValues() }.filter(Manifest.isName)
    }

    /// Returns the identifiers of the apps' stores that are excluded from sync, sorted.
    func excludedStores() throws -> [String] {
        try recovery.retrying { try database.excludedStores() }.filter(Manifest.isName)
    }

    // MARK: Removing

    /// Removes a store from this device.
    /// - Returns: the keys that were visible; `nil` if the store held nothing.
    func forget(_ identifier: String) throws -> [Key]? {
        guard Manifest.isName(identifier) else { return nil }
        guard !account.keys.isAccountMoving else {
            throw BusError.store(
                .conflict,
                "The account is moving to a new key, for which this device needs all of its values. Remove the store "
                    + "when the move is complete.")
        }
        // If a client has the store open, it comes back into use, and what accounts have of it is downloaded again.
        let isInUse = storeInUse(identifier) != nil
        guard let keys = try database.forget(store: identifier, whileInUse: isInUse) else { return nil }
        localKeys.forget(identifier)
        if isInUse { account.sync.noteHint() }
        return keys
    }

    /// Refuses to forget changes that only this device has: those that it would upload when it returns to an account that
    /// it has left, and those of a store that is excluded from sync.
    func checkAccountsHaveChanges(of identifier: String) throws {
        let excluded = account.sync.isSignedIn ? try database.summaries.excludedChanges(in: identifier) : 0
        guard excluded == 0 else {
            throw BusError.store(
                .conflict,
                """
                The account does not have \(excluded) of the store's changes, because the store is excluded from sync; \
                removing the store loses them. "ubiquitousctl stores sync \(identifier) on" uploads them; "ubiquitousctl \
                stores remove --discard-changes \(identifier)" removes them anyway.
                """)
        }
        let count = try database.summaries.changesOfLeftAccounts(in: identifier, isSignedIn: account.sync.isSignedIn)
        if count == 0 { return }
        throw BusError.store(
            .conflict,
            """
            An account that this device has left does not have \(count) of the store's changes yet; removing the store \
            loses them. If the store takes part in sync, they are uploaded when this device signs in there again; \
            "ubiquitousctl stores remove --discard-changes \(identifier)" removes them anyway.
            """)
    }

    /// Refuses if the present account lacks changes of a store.
    func checkHasUploaded(_ identifier: String) throws {
        guard account.sync.isSignedIn else { return }
        try account.move.checkUploadsAreRead()
        let count = try database.summaries.pendingChanges(in: identifier)
        if count > 0 { throw BusError.notUploaded(count) }
    }

    /// The error message for requests about the account if the store isn't synced.
    static func takesNoPart(_ identifier: String) -> String {
        "The store is excluded from sync. \"ubiquitousctl stores sync \(identifier) on\" includes it."
    }

    /// Removes a store's values on every device of the account.
    /// - Parameter isCheck: whether only to find out if that would be refused.
    /// - Returns: the keys that were visible; `nil` if the store held nothing.
    func removeEverywhere(_ identifier: String, onlyChecking isCheck: Bool) throws -> [Key]? {
        guard Manifest.isName(identifier), try storesWithValues().contains(identifier) else { return nil }
        let store = try database.store(identifier, localKeys: localKeys.keys(of: identifier))
        if database.hasAccount {
            guard store.isSynchronized else {
                throw BusError.store(.conflict, Self.takesNoPart(identifier))
            }
            guard store.isDownloaded else {
                throw BusError.store(.conflict, "The account's values have not all arrived yet; try again after that.")
            }
        }
        if isCheck { return [] }
        let keys = try database.removeEverything(in: identifier)
        account.sync.noteLocalChange()
        return keys
    }

    // MARK: Manifests

    /// Registers a manifest. It replaces an earlier one of the same app. Returns when it is on the disk.
    ///
    /// The file has only what counts: all of a user's manifests are read when the user's data is opened, and for calls of
    /// stores while it isn't.
    /// - Parameter bytes: the manifest as the app has it, which is kept if it is the smaller form.
    func register(_ manifest: Manifest, _ bytes: [UInt8]) async throws {
        try await account.files.inTurn { [self] in
            if registered.holds(manifest) { return }
            let maximum = service.configuration.bounds.registeredManifests
            guard registered.count < maximum || registered.has(manifest.applicationIdentifier) else {
                throw BusError.limitsExceeded("A user may register \(maximum) manifests.")
            }
            guard registered.hasRoom(for: manifest) else {
                throw BusError.limitsExceeded(
                    "The manifests of a store may have at most \(RegisteredManifests.mostLocalKeys) local keys together."
                )
            }
            let own = try manifest.propertyList
            let smaller = own.count <= Manifest.maximumSize ? own : bytes
            guard registered.hasRoom(forBytes: smaller.count, of: manifest, atMost: maximum) else {
                throw BusError.limitsExceeded(
                    "A user's registered manifests may have at most \(maximum * RegisteredManifests.bytesEach) bytes "
                        + "together.")
            }
            // Before the manifest counts.
            if let identifier = manifest.identifier, !users.installed.manifests.declares(identifier) {
                await localKeys.note(manifest, of: identifier)
            }
            let path = try registered.makePath(of: manifest)
            try await account.files.waiting { try PrivateFile.replace(path, with: smaller) }
            registered.note(manifest, smaller.count)
            users.forgetPaths(uid)
            localKeys.renew()
        }
    }

    // MARK: Resting and closing

    /// Counts what the loop has done for the user since then, unless a call of the user has it.
    func noteWork(since began: WorkTime) { users.shares.note(began, ofDataOf: uid) }

    /// Whether no client uses anything of the user's and no background work is due.
    var isIdle: Bool { stores.isEmpty && account.isIdle }

    /// Releases memory that isn't needed before the next sync cycle or call.
    func rest() {
        if stores.isEmpty { database.releaseMemory() }
    }

    /// Ends what is under way, and closes the database.
    func close() {
        recovery.stop()
        localKeys.close()
        account.stop()
        database.close()
        for store in stores.values { store.isInUse = false }
        (stores, memory) = ([:], 0)
    }
}
