// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import EventLoop
internal import GLibLoop
internal import Glibc
package import SDBus
package import UbiquitousStore

/// The panel's connection to the service.
@BusActor
package final class PanelService {
    private let address: BusAddress
    private var opened: ServiceConnection?
    private var match: Slot?
    private var again: EventSource?
    private let notify: @MainActor @Sendable () -> Void

    /// How long to wait for a remote. The user can cancel earlier.
    static let patience = Duration.seconds(300)

    /// - Parameters:
    ///   - bus: `system`, `session` or an address.
    ///   - notify: called when the account has changed, or the service has come or gone.
    package nonisolated init(bus: String, notify: @escaping @MainActor @Sendable () -> Void) {
        address = BusAddress(bus)
        self.notify = notify
    }

    // A window may release the last reference, and libsystemd's objects belong to the loop's thread.
    isolated deinit {}

    func connection() async throws -> ServiceConnection {
        if let opened, opened.isOpen { return opened }
        let connection = try await ServiceConnection.open(address, description: "settings panel")
        opened = connection
        connection.onOwnerChange = { [weak self] _ in
            self?.match = nil
            self?.tell()
        }
        connection.onDisconnect { [weak self] in self?.tell() }
        return connection
    }

    private func tell() { MainThread.task { [notify] in notify() } }

    private func account() async throws -> AccountObject {
        let account = try await connection().account()
        if match == nil {
            let slot = try await account.onChange { [weak self] _ in self?.tell() }
            try await account.subscribe()
            match = slot
        }
        return account
    }

    // MARK: State

    /// Reads everything that the panel shows.
    ///
    /// - Parameter apps: the apps, if they needn't be read again.
    package func state(knowing apps: [AppUsage]? = nil) async throws -> PanelState {
        do { return try await look(apps) } catch let error as UbiquitousStoreError where error.code == .limitsExceeded {
            // The service is overloaded, and sends no signal when it isn't any more.
            again = EventLoop.shared.after(.seconds(2)) { [weak self] in self?.tell() }
            throw error
        }
    }

    private func look(_ known: [AppUsage]?) async throws -> PanelState {
        let (connection, account) = (try await connection(), try await account())
        async let features = connection.manager.properties().features
        async let description = account.properties()
        async let devices = account.devices()
        let caller = try await connection.manager.identify()
        var apps = known ?? []
        if known == nil { apps = try await self.apps(connection, caller.entitled) }
        return PanelState(
            features: try await features, account: try await description, devices: try await devices, apps: apps,
            folderRoots: FolderRoots(caller.folderRoots),
            time: microsecondsNow())
    }

    private func apps(_ connection: ServiceConnection, _ entitled: [String]) async throws -> [AppUsage] {
        let listed = try await connection.manager.stores().filter { $0.uid == geteuid() }.map(\.identifier)
        let applications = Self.applications
        var apps: [AppUsage] = []
        for identifier in Set(listed + entitled).sorted() {
            do {
                let store = try await connection.store(identifier).properties()
                apps.append(
                    AppUsage(
                        identifier: identifier, application: applications[identifier], keys: store.keyCount,
                        bytes: store.bytesUsed, limits: store.limits, isSynchronized: store.isSynchronized))
            } catch let error as UbiquitousStoreError where error.code != .limitsExceeded {
                // The store was removed meanwhile.
                continue
            }
        }
        return apps
    }

    /// The apps, by the stores that their manifests declare.
    private static var applications: [String: String] {
        var applications: [String: String] = [:]
        for file in InstalledManifests.files(in: InstalledManifests.directories(in: environmentVariable)) {
            guard let bytes = try? ManifestFile.read(file, trusting: geteuid()),
                let manifest = try? Manifest(propertyList: bytes), let identifier = manifest.identifier
            else { continue }
            applications[identifier] = manifest.applicationIdentifier
        }
        return applications
    }

    // MARK: The account

    /// Runs an attempt with a remote. Canceling it also cancels it in the service, so that it doesn't succeed later.
    private func attempt<T: Sendable>(_ body: (AccountObject) async throws -> T) async throws -> T {
        let account = try await account()
        do { return try await body(account) } catch let error as CancellationError {
            // In a task of its own, because this one is canceled. Older services can't cancel an attempt.
            await EventLoop.task { try? await account.endAttempt() }.value
            throw error
        }
    }

    /// Signs in, or gives the account that is signed in new credentials; returns when the remote has been verified.
    package func signIn(_ form: SignInForm) async throws {
        let (url, options) = (try form.address(), try form.options())
        _ = try await attempt { try await $0.signIn(url, options, timeout: Self.patience) }
        await Self.startNotifier()
    }

    /// Starts the program that notifies the user of problems with the account, if it is installed. It ends when nobody
    /// is signed in, so signing in starts it.
    private static func startNotifier() async {
        guard let session = try? BusConnection.open(.session, description: "settings panel") else { return }
        defer { session.close() }
        let bus = "org.freedesktop.DBus"
        try? await session.call(
            bus, "/org/freedesktop/DBus", bus, "StartServiceByName",
            build: {
                try $0.append("org.example.UbiquitousStore.Notifier")
                try $0.append(UInt32(0))
            }, decode: { _ in })
    }

    /// Tests a remote, step by step.
    package func check(_ form: SignInForm) async throws -> [BackendStep] {
        let (url, options) = (try form.address(), try form.options())
        return try await attempt { try await $0.check(url, options, timeout: Self.patience) }
    }

    /// Uploads pending changes, and returns what signing out means if removing the values still loses some; `nil` if it
    /// loses none.
    package func lossOnSigningOut() async throws -> String? {
        let account = try await account().uploadPendingChanges(timeout: Self.patience)
        return account.isSignedIn && AccountPage.losesChanges(account) ? AccountPage.signingOut(account) : nil
    }

    /// Signs out.
    /// - Parameters:
    ///   - keepsPending: whether to fail if removing the values would lose changes that the account lacks.
    ///   - keepsLastKey: whether to do nothing if nobody has confirmed the words of the encrypted account.
    /// - Returns: whether it signed out.
    package func signOut(
        keepingValues: Bool, keepingPending keepsPending: Bool, keepingLastKey keepsLastKey: Bool
    ) async throws -> Bool {
        let account = try await account()
        do {
            try await account.signOut(
                keepingValues: keepingValues, keepingPending: keepsPending, keepingLastKey: keepsLastKey)
        } catch let error as UbiquitousStoreError where error.code == .conflict && keepsLastKey {
            guard try await account.properties().isEncrypted else { throw error }
            // During a move to a new key, this throws an error that says so.
            _ = try await account.recoveryPhrase(marksShown: false)
            guard try await account.properties().isPhraseUnconfirmed else { throw error }
            return false
        }
        return true
    }

    package func syncNow() async throws { try await account().syncNow(timeout: Self.patience) }

    package func setPaused(_ isPaused: Bool) async throws { try await account().setPaused(isPaused) }

    /// Decides whose values are right, after the account's remote was emptied.
    package func resolve(keepingThisDevices: Bool) async throws {
        try await attempt { try await $0.resolve(keepingThisDevices ? .local : .remote, timeout: Self.patience) }
    }

    // MARK: Encryption

    /// Returns the words that let another device in.
    package func recoveryWords() async throws -> RecoveryWords {
        RecoveryWords(try await account().recoveryPhrase(marksShown: false))
    }

    /// Records that the user has noted the words.
    package func confirmRecoveryWords() async throws { _ = try await account().recoveryPhrase(marksShown: true) }

    /// Gives the account its words, if its key is missing on this device.
    package func unlock(_ words: String) async throws {
        try await attempt { try await $0.unlock(words, timeout: Self.patience) }
    }

    /// Gives the account a new key; returns when everything that this device has is uploaded under it.
    /// - Parameter passesOver: whether to leave out what can't be read.
    package func move(_ move: KeyMove, passingOverUnread passesOver: Bool = false) async throws {
        let account = try await account()
        switch move {
        case .encrypt: try await account.encrypt(passingOverUnread: passesOver, timeout: Self.patience)
        case .replaceWords: try await account.replaceKey(passingOverUnread: passesOver, timeout: Self.patience)
        }
    }

    // MARK: Devices

    /// - Throws: ``DeviceIsGone`` if another device has forgotten it meanwhile.
    package func rename(_ device: String, to name: String) async throws {
        let account = try await account()
        try await Self.change(device, of: account) { try await account.renameDevice(device, name.trimmed) }
    }

    package func forget(_ device: String) async throws {
        let account = try await account()
        do {
            try await Self.change(device, of: account) { try await account.forgetDevice(device) }
        } catch is DeviceIsGone {
            // That is what the user wants.
        }
    }

    /// An error: the account has no such device any more.
    package struct DeviceIsGone: Error, CustomStringConvertible {
        package var description: String { tr("The account doesn't have this device any more.") }
    }

    private static func change(_ device: String, of account: AccountObject, _ body: () async throws -> Void)
        async throws
    {
        do { try await body() } catch let error as UbiquitousStoreError where error.code == .invalidArguments {
            if try await account.devices().contains(where: { $0.identifier == device }) { throw error }
            throw DeviceIsGone()
        }
    }

    // MARK: Apps

    package func setSynchronized(_ store: String, _ isOn: Bool) async throws {
        try await account().setSynchronized(store, isOn)
    }
}
