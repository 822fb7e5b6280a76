// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import Foundation
import PropertyList
import Replication
import Sealing
import SeededRandom
import StoreEngine
import SyncEngine
import Synchronization
import Testing

@testable import BackendSupport
@testable import Blobs
@testable import Folder

/// A directory that is removed when the test is over.
final class Place: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "backends-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func sub(_ name: String) throws -> String {
        try FileManager.default.createDirectory(atPath: path + "/" + name, withIntermediateDirectories: true)
        return path + "/" + name
    }

    func names(_ folder: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: path + "/" + folder)) ?? [])
            .filter { !$0.hasPrefix(".") }.sorted()
    }

    func read(_ name: String) throws -> [UInt8] { try Array(Data(contentsOf: URL(fileURLWithPath: path + "/" + name))) }

    func write(_ name: String, _ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: path + "/" + name))
    }

    func remove(_ name: String) throws { try FileManager.default.removeItem(atPath: path + "/" + name) }
}

/// Runs a program and waits for it.
@discardableResult
func run(_ arguments: String...) throws -> (status: Int32, output: String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: data, as: UTF8.self))
}

/// Whether file systems can be mounted, as by root outside a container. Tests that need it are skipped elsewhere.
let canMount: Bool = {
    guard geteuid() == 0, let place = try? Place() else { return false }
    guard let result = try? run("mount", "-t", "tmpfs", "none", place.path), result.status == 0 else { return false }
    _ = try? run("umount", place.path)
    return true
}()

/// A folder's storage that records what is done with it, and can be made to fail.
final class RecordingStorage: BlobStorage {
    let base: FolderStorage
    private let log = Mutex<[(action: String, name: String, size: Int)]>([])
    private let failing = Mutex<Set<String>>([])

    init(_ base: FolderStorage) { self.base = base }

    var traits: BackendTraits { base.traits }
    var actions: [(action: String, name: String, size: Int)] { log.withLock(\.self) }
    var bytesWritten: Int { actions.filter { $0.action != "delete" }.reduce(0) { $0 + $1.size } }
    func clear() { log.withLock { $0 = [] } }
    /// Makes writes of names with this prefix fail; `nil` ends that.
    func fail(_ prefix: String?) { failing.withLock { $0 = prefix.map { [$0] } ?? [] } }

    private func note(_ action: String, _ name: String, _ size: Int = 0) throws(RemoteError) {
        if failing.withLock({ $0.contains { name.hasPrefix($0) } }) { throw RemoteError(.unavailable, "made to fail") }
        log.withLock { $0.append((action, name, size)) }
    }

    func check(creatingFolder createsFolder: Bool) async throws(RemoteError) -> [String] {
        try await base.check(creatingFolder: createsFolder)
    }
    func list(_ folder: String) async throws(RemoteError) -> [BlobListing] { try await base.list(folder) }
    func get(_ name: String, limit: Int, unless version: String?) async throws(RemoteError) -> BlobContent {
        try await base.get(name, limit: limit, unless: version)
    }
    func put(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        try note("put", name, bytes.count)
        try await base.put(name, bytes)
    }
    func create(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        try note("create", name, bytes.count)
        try await base.create(name, bytes)
    }
    func delete(_ name: String) async throws(RemoteError) {
        try note("delete", name)
        try await base.delete(name)
    }
    func hints() -> AsyncStream<Void> { base.hints() }
    func close() { base.close() }
}

/// The result of a pull.
struct PullOutcome {
    var own: OwnPublication
    var problems: [String]
    var isComplete: Bool
    var stores: [String]
    var arrived: [String]
    var devices: [Origin: RemoteDevice]
    var account: RemoteAccount
}

/// A clock that advances by a millisecond with each reading.
final class Clock: Sendable {
    private let time = Mutex<UInt64>(1_700_000_000_000_000)

    func next(after microseconds: UInt64 = 1000) -> UInt64 {
        time.withLock { time in
            time += microseconds
            return time
        }
    }
}

/// A device: a real database, and a backend on a folder. It does what the sync engine does in a cycle, without waiting.
final class Device {
    let disk: Place
    let folder: String
    /// Kept alive for as long as the device.
    var place: Place?
    let name: String
    private(set) var database: UserDatabase
    private(set) var storage: RecordingStorage
    private(set) var backend: BlobBackend<RecordingStorage>
    private let clock = Clock()
    private var environment: Environment

    /// Lets time pass by the device's clock.
    func wait(minutes: UInt64) { _ = clock.next(after: minutes * 60_000_000) }

    private let protection: Protection

    init(
        _ folder: String, name: String = "A", seed: UInt64 = .random(in: 1 ... .max), protection: Protection = .none
    ) throws {
        disk = try Place()
        self.folder = folder
        self.name = name
        self.protection = protection
        let generator = Mutex(SplitMix(seed: seed))
        environment = Environment(
            time: { [clock] in clock.next() },
            random: { generator.withLock { $0.next() } }
        )
        database = try Self.openDatabase(disk, environment)
        (storage, backend) = try Self.openBackend(folder, environment, protection)
    }

    static func openDatabase(_ disk: Place, _ environment: Environment) throws -> UserDatabase {
        try UserDatabase(
            in: try disk.sub("db"),
            runtimeDirectory: try disk.sub("run"),
            environment: environment
        )
    }

    static func openBackend(
        _ folder: String,
        _ environment: Environment,
        _ protection: Protection = .none
    ) throws -> (RecordingStorage, BlobBackend<RecordingStorage>) {
        let storage = RecordingStorage(
            FolderStorage(try FolderURL("folder://" + folder), access: .own(uid: geteuid()))
        )
        return (storage, BlobBackend(storage: storage, environment: environment, protection: protection))
    }

    /// Restarts the service; or the machine, which empties `/run`.
    func restart(machine: Bool = false) async throws {
        await backend.close()
        database.close()
        if machine { try FileManager.default.removeItem(atPath: disk.path + "/run") }
        database = try Self.openDatabase(disk, environment)
        (storage, backend) = try Self.openBackend(folder, environment, protection)
    }

    func signIn(creating: Bool = true) async throws {
        let account = try await backend.open(creatingAccount: creating)
        _ = try database.enter(account: account.identifier, bringingValues: false)
    }

    func set(_ store: String, _ key: String, _ value: Value) throws {
        try database.store(store).stage(setting: [(Key(key), value)], removing: [])
        try database.commit()
    }

    func set(_ store: String, _ values: [(String, Value)]) throws {
        try database.store(store).stage(setting: try values.map { (try Key($0.0), $0.1) }, removing: [])
        try database.commit()
    }

    func remove(_ store: String, _ key: String) throws {
        try database.store(store).stage(setting: [], removing: [Key(key)])
        try database.commit()
    }

    func values(_ store: String) throws -> [String: Value] {
        Dictionary(uniqueKeysWithValues: try database.store(store).values.map { ($0.key.string, $0.value) })
    }

    @discardableResult
    func pull() async throws -> PullOutcome {
        let cursor = database.account.beginsAnew ? nil : database.account.cursor
        let pull = try await backend.pull(
            after: cursor, as: database.origin, published: database.origins.publicationCount)
        if case .foreign = pull.ownPublication { try database.leaveOrigin() }
        if pull.account.identifier != database.account.identifier {
            try database.rename(accountTo: pull.account.identifier)
        }
        var joined: Set<String> = []
        for store in pull.stores {
            let change = try await pull.change(of: store)
            if !change.isComplete && change.states.state == StoreState() { continue }
            try join(change.states.state, to: store)
            joined.insert(store)
        }
        let result = await pull.finish(joined: joined)
        if result.isComplete || database.account.isDownloaded {
            try database.progress.completeDownload(cursor: result.cursor)
        }
        return PullOutcome(
            own: pull.ownPublication,
            problems: pull.problems,
            isComplete: result.isComplete,
            stores: pull.stores,
            arrived: joined.sorted(),
            devices: pull.devices,
            account: pull.account
        )
    }

    private func join(_ state: StoreState, to identifier: String) throws {
        let store = try database.store(identifier)
        let arrives = !store.isDownloaded
        let plan = Join.plan(store, taking: state, isFirstDownload: arrives)
        if !arrives, plan.changesNothing(in: store.vector) { return }
        _ = store.stage(plan, cause: arrives ? .downloaded : .joined)
        try database.commit()
    }

    func beginPush() async throws -> any RemotePush {
        try database.origins.willPublish()
        return try await backend.push(
            Publication(
                account: database.account.identifier,
                origin: database.origin,
                formerOrigins: try database.origins.former(),
                counts: try database.origins.publicationCounts(),
                device: RemoteDevice(identifier: name, name: name),
                stores: try database.progress.publishedStores(),
                time: environment.time()
            )
        )
    }

    @discardableResult
    func push() async throws -> [String] {
        let push = try await beginPush()
        var published: [String: UInt64] = [:]
        for identifier in push.stores {
            let snapshot = try database.store(identifier).snapshot()
            try await push.upload(snapshot)
            published[identifier] = snapshot.sequence
        }
        try await push.finish()
        try database.progress.markPublished(published, under: database.origin)
        return push.stores
    }

    @discardableResult
    func sync() async throws -> PullOutcome {
        let pulled = try await pull()
        var isMissing = true
        if case .asPublished = pulled.own { isMissing = false }
        if try database.summaries.pendingChanges() > 0 || isMissing { try await push() }
        return pulled
    }

    func collectGarbage(forgetting origins: Set<Origin> = [], after days: UInt64 = 0) async throws {
        try await backend.collectGarbage(
            GarbageCollection(
                account: database.account.identifier,
                origin: database.origin,
                forgottenOrigins: origins,
                time: 1_700_000_100_000_000 + days * 86_400_000_000
            )
        )
    }

    /// The head under this device's name.
    var headName: String { "h/\(database.origin)" }
}

extension OwnPublication {
    var name: String { "\(self)" }
}

extension Protection {
    /// The key of encrypted accounts in tests.
    static let testKey = Protection.key(HeldKey(time: 1_700_000_000_000_000, random: Dice(seed: 77).roll))
}
