// SPDX-License-Identifier: Apache-2.0

internal import Blobs
internal import Glibc
internal import PropertyList
internal import Replication
internal import Sealing
internal import StoreEngine
internal import SyncEngine

/// A device's service, from its start to its end.
final class Process: @unchecked Sendable {
    // Safe because everything that touches it happens on one thread.
    let database: UserDatabase
    let sync: AccountSync
    let client: Client
    private let stores: [Store]
    private let subscribers: [Subscriber]
    private unowned let device: WholeDevice
    private let world: World<WholeDevice>
    private var lastPush: UInt64 = 0
    private var lastName: (account: String, origin: Origin)?
    private var arming = 0
    /// Whether a step of a move is under way.
    var isAdoptingKey = false

    init(_ device: WholeDevice) throws {
        self.device = device
        world = device.world
        client = Client(device: device.number)
        database = try UserDatabase(
            in: device.files.directory, runtimeDirectory: device.files.runtime, limits: world.conditions.limits,
            environment: Self.environment(device, client))
        let localKeys = Self.localKeys(device)
        let database = database
        stores = try (0..<world.conditions.stores).map { try database.store(Names.stores[$0], localKeys: localKeys) }
        subscribers = stores.map { [world, number = device.number] store in
            Subscriber(store) {
                database.account.identifier
            } ledger: {
                world.ledger
            } report: {
                world.report("device \(number), \($0)")
            } excuse: {
                world.ledger.excuse(.olderValue)
            }
        }
        let remoteDevice = RemoteDevice(identifier: "device\(device.number)", name: "Device \(device.number)")
        let timeline = world.timeline
        sync = AccountSync(database, device: remoteDevice) { timeline.now }
        sync.hasSubscribers = world.conditions.hasSubscribers
        sync.host.localKeys = { _ in localKeys }
        sync.host.onNotice = { [unowned self] in hear($0) }
        sync.host.onRename = { [unowned self] in self.device.noteRename(self.database.account.identifier) }
        sync.host.onStateChange = { [unowned self] in stateChanged() }
        sync.host.onScheduleChange = { [unowned self] in arm() }
        let executor = world.executor
        sync.host.onLeave = { backend in executor.start { await backend.close() } }
    }

    private static func environment(_ device: WholeDevice, _ client: Client) -> Environment {
        nonisolated(unsafe) let (world, files, client) = (device.world, device.files, client)
        // Safe because everything happens on one thread.
        var environment = Environment(
            time: { [unowned device] in
                device.readsOfClock += 1
                return UInt64(max(0, Int64(world.timeline.now) + device.clock * 1000 + device.readsOfClock))
            },
            random: { world.chance.next() })
        let executor = world.executor
        environment.disk = Disk(
            run: { executor.run($0) },
            synchronize: { _, path in
                guard client.isAlive, files.canSync(at: world.timeline.now) else {
                    errno = EIO
                    return -1
                }
                if path.hasSuffix("-wal") { files.noteSync() }
                return 0
            })
        return environment
    }

    /// The local keys of the device's app. Only every second device has some.
    private static func localKeys(_ device: WholeDevice) -> LocalKeys {
        device.world.conditions.hazards.contains(.localKeys) && device.number % 2 == 0 ? LocalKeys(["local*"]) : .none
    }

    /// Continues with the account to which the device is signed in.
    func begin() {
        guard let account = device.account, account.isSignedIn else { return }
        do {
            let former = database.account.identifier
            let isAdoptingKey = former != account.identifier && account.formerly.contains(former)
            if former != account.identifier, !isAdoptingKey {
                _ = try database.enter(account: account.identifier, bringingValues: false)
            }
            let backend = try backend(of: world.places[account.place])
            if isAdoptingKey { return device.continueSync(with: backend, of: account, in: self) }
            sync.resume(with: backend, isPaused: account.isPaused, onlyReads: account.next != nil)
        } catch {
            world.report("going on with the account: \(error)")
        }
    }

    func end() {
        sync.host.onNotice = nil
        sync.host.onRename = nil
        sync.host.onStateChange = nil
        sync.host.onScheduleChange = nil
        sync.close()
        database.close()
    }

    /// - Parameter protection: how the account is encrypted; `nil` for what the device knows.
    func backend(
        of place: Place<[UInt8]>, _ protection: Protection? = nil
    ) throws(RemoteError) -> any RemoteBackend {
        if let cluster = place.cluster {
            return try cluster.backend(
                for: client, world.conditions, database.environment, world.executor.serial,
                key: world.keys.isEmpty ? nil : world.keys[place.number])
        }
        let storage = SimulatedStorage(place, client, givesHints: world.conditions.givesHints)
        if world.movesToKeys {
            let protection = protection ?? device.movingProtection(at: place.number)
            storage.onWrite = { [unowned self] in
                world.attacker?.note($0, $1, to: place.number)
                listen($0, $1, protection, isSignedIn: device.place == place.number)
            }
            return BlobBackend(
                storage: storage, environment: database.environment, executor: world.executor.serial,
                protection: protection)
        }
        var held = world.keys.isEmpty ? nil : world.keys[place.number]
        if let own = held?.key.identifier { held?.rejected = device.rejected.subtracting([own]) }
        if let held {
            let eavesdropper = Eavesdropper(key: held.key.identifier)
            storage.onWrite = { [world, number = device.number] name, bytes in
                world.attacker?.note(name, bytes, to: place.number)
                guard let found = eavesdropper.find(name, bytes) else { return }
                world.report("device \(number) sent \(name): \(found)")
            }
        }
        return BlobBackend(
            storage: storage, environment: database.environment, executor: world.executor.serial,
            protection: device.hasLostKey ? .locked : held.map(Protection.key) ?? .none)
    }

    /// Checks what the device sends of an account that may move.
    /// - Parameter isSignedIn: whether the device is signed in to this account.
    private func listen(_ name: String, _ bytes: [UInt8], _ protection: Protection, isSignedIn: Bool) {
        var found: String?
        switch protection {
        // The marker of the former form, written again after it was damaged or removed.
        case .moving(let move) where move.formerNames.contains { name == "a/\($0)" }: break
        case .none where sync.needsKey && isSignedIn: found = "I20: it has stopped, and is unencrypted"
        case .none, .locked: break
        case .key(let held): found = Eavesdropper(key: held.key.identifier).find(name, bytes)
        case .moving where !name.hasPrefix("a/"): found = "I20: its account is moving"
        case .moving(let move): found = Eavesdropper(key: move.next.key.identifier).find(name, bytes)
        // Which marker the words open is known only afterwards.
        case .phrase where name.hasPrefix("a/"): break
        case .phrase: if let key = device.key, isSignedIn { found = Eavesdropper(key: key).find(name, bytes) }
        }
        if let found { world.report("device \(device.number) sent \(name): \(found)") }
    }

    func store(_ index: Int) -> Store { stores[index] }

    /// - Parameters:
    ///   - held: the account's key.
    ///   - isRestored: whether the account was restored to its former remote.
    func enter(
        _ remote: RemoteAccount, _ backend: any RemoteBackend, _ place: Int, _ held: HeldKey?,
        isRestored: Bool = false
    ) {
        let (before, former) = (world.states(device), device.account)
        do {
            if isRestored {
                try sync.signIn(to: backend, asRestored: remote)
            } else {
                try sync.signIn(to: backend, as: remote, bringingValues: false)
            }
        } catch {
            return world.report("signing in: \(error)")
        }
        noteAccount()
        var file = WholeDevice.AccountFile(
            place: place, identifier: database.account.identifier, isSignedIn: true)
        if world.movesToKeys { file.key = held.map { .init($0) } }
        device.noteEntry(file)
        if let former, former.place == place, isUnknown(former, at: place) {
            world.excuse(device, for: .leftAccount, before: before, place: place, after: world.states(device))
        }
        verify()
    }

    /// Whether nothing tells that an unencrypted account, which the user has left, is the encrypted one in its place.
    private func isUnknown(_ left: WholeDevice.AccountFile, at place: Int) -> Bool {
        !left.isSignedIn && left.key == nil && device.account?.key != nil
            && !world.places[place].names(seenBy: device.number).contains {
                $0.hasPrefix("a/") && FormerName(noteName: $0.dropFirst(2))?.name == KeyIdentifier(left.identifier)
            }
    }

    // MARK: Cycles

    private func arm() {
        arming += 1
        guard let due = sync.nextCycle else { return }
        let (now, armed) = (world.timeline.now, arming)
        world.timeline.after(due > now ? due - now : 0) { [weak self] in
            guard let self, armed == arming, client.isAlive else { return }
            world.executor.start {
                await self.sync.runDueCycles()
                if self.world.movesToKeys { await self.device.continueMove() }
            }
        }
    }

    private func stateChanged() {
        // Without the directory, whose name differs in each process.
        world.trace.note(
            world.timeline.now, 6, UInt64(device.number),
            line: "device \(device.number) is \(sync.state)\(sync.lastError.map { ": \($0)" } ?? "")"
                .replacing(world.root, with: ""))
        noteOrigin()
        verify()
        if sync.state == .idle, sync.lastPush != lastPush, !sync.hasPendingChanges {
            lastPush = sync.lastPush
            world.noteSettled(device)
        }
        // The user deals with the problem after a while, and with damage once it has lasted.
        if isStoppedByDamage, world.resolvesByItself {
            world.timeline.after(3 * hour) { [weak device] in device?.continueSync() }
        }
        if sync.isReset || sync.needsKey, world.resolvesByItself {
            world.timeline.after(device.hasLostKey ? 3 * hour : 10 * minute) { [weak device] in device?.continueSync() }
        }
    }

    /// Whether sync has stopped because something of the account is damaged.
    var isStoppedByDamage: Bool { sync.state == .error && sync.lastError?.code == .damaged }

    /// Counts the origins that were left. Within an account, that happens only if another device writes under one, or
    /// if a store is forgotten: see ``noteForgetting()``.
    private func noteOrigin() {
        let name = currentName
        if let lastName, lastName.account == name.account, lastName.origin != name.origin {
            world.leftOrigins += 1
            world.noteForeignHead()
        }
        lastName = name
    }

    private var currentName: (account: String, origin: Origin) { (database.account.identifier, database.origin) }

    /// Notes that the device has taken another origin, because it has forgotten a store. No write gets another dot.
    func noteForgetting() { lastName = currentName }

    // MARK: Notices

    private func hear(_ notice: StoreNotice) {
        guard let index = stores.firstIndex(where: { $0 === notice.store }) else { return }
        world.trace.note(
            world.timeline.now, 7, UInt64(device.number), notice.store.generation,
            line:
                "device \(device.number) is told of \(notice.keys) in store \(index), reason \(notice.reason)")
        subscribers[index].hear(notice)
        if !world.keys.isEmpty, let key = notice.keys.first(where: { isForged($0, in: notice.store) }) {
            world.report("I19: device \(device.number) shows under \(key) what nobody has written")
        }
        world.onNotice(device.number, notice)
    }

    private func isForged(_ key: Key, in store: Store) -> Bool {
        guard Names.index(of: key) != nil, let number = store.value(for: key).flatMap(Names.number) else {
            return false
        }
        return world.ledger.cell(of: number) == nil
    }

    /// Checks that the subscribers were told everything.
    func verify() { for subscriber in subscribers { subscriber.verify() } }

    func noteAccount() { for subscriber in subscribers { subscriber.noteAccount() } }

    func noteOwnWrite(_ store: Int) {
        subscribers[store].refresh()
        sync.noteLocalChange()
    }
}
