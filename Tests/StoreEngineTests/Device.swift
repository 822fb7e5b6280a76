// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Replication
import SeededRandom
import StoreEngine
import Synchronization

/// A database in a directory of its own, with a clock that is moved by hand and random numbers from a seed.
final class Device {
    let root: String
    let limits: Limits
    let clock = Clock()
    private(set) var database: UserDatabase

    var directory: String { root + "/state" }
    var runtime: String { root + "/run" }
    var file: String { directory + "/stores.sqlite" }

    init(limits: Limits = .standard, root: String? = nil) throws {
        self.root = root ?? NSTemporaryDirectory() + "store-engine-" + UUID().uuidString
        self.limits = limits
        for directory in ["state", "run"] {
            try FileManager.default.createDirectory(
                atPath: self.root + "/" + directory,
                withIntermediateDirectories: true
            )
        }
        database = try UserDatabase(
            in: self.root + "/state",
            runtimeDirectory: self.root + "/run",
            limits: limits,
            environment: clock.environment
        )
    }

    deinit {
        database.close()
        try? FileManager.default.removeItem(atPath: root)
    }

    func close() { database.close() }

    /// Closes the database and opens it again, as a restart of the service does.
    func reopen(runtime: Bool = true) throws {
        database.close()
        database = try open(runtime: runtime)
    }

    func open(runtime: Bool = true) throws(EngineError) -> UserDatabase {
        try UserDatabase(
            in: directory,
            runtimeDirectory: runtime ? self.runtime : nil,
            limits: limits,
            environment: clock.environment
        )
    }

    func store(_ identifier: String = "app", local: [String] = []) throws -> Store {
        try database.store(identifier, localKeys: LocalKeys(local))
    }

    /// Sets and removes keys of a store, commits, and returns the keys that have changed.
    @discardableResult
    func write(
        _ values: [(String, Value)] = [],
        removing removed: [String] = [],
        to identifier: String = "app"
    ) throws -> [String] {
        let keys = try store(identifier).stage(
            setting: values.map { (key($0), $1) },
            removing: removed.map(key)
        )
        try database.commit()
        return keys.map(\.string)
    }

    /// Returns the approximate size of all stores' history, in bytes of the database.
    func historySize() throws -> Int { try pass(removing: false) }

    /// Removes the history of all stores.
    func clearHistory() throws { _ = try pass(removing: true) }

    private func pass(removing: Bool) throws -> Int {
        var pass = try HistoryPass(of: database, removing: removing)
        while try pass.step(in: database) {}
        return pass.bytes
    }

    /// Runs statements on a connection of their own, and returns the rows' columns as texts.
    @discardableResult
    func sql(_ statements: String) throws -> [[String]] { try SQLite.run(statements, file) }
}

func key(_ string: String) -> Key { Key(unchecked: string) }

/// A clock that stands still until it is moved.
final class Clock: Sendable {
    private let state = Mutex(
        (time: UInt64(1_800_000_000_000_000), step: UInt64(0), random: seeds.add(1, ordering: .relaxed).newValue))
    private static let seeds = Atomic<UInt64>(1)

    var time: UInt64 {
        get { state.withLock { $0.time } }
        set { state.withLock { $0.time = newValue } }
    }

    /// How far the clock advances each time that the device reads it, in microseconds.
    var step: UInt64 {
        get { state.withLock { $0.step } }
        set { state.withLock { $0.step = newValue } }
    }

    var environment: Environment {
        var environment = Environment(
            time: {
                self.state.withLock { state in
                    state.time += state.step
                    return state.time
                }
            },
            random: {
                self.state.withLock { state in
                    state.random = state.random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                    return state.random ^ (state.random >> 29)
                }
            }
        )
        // A machine that is busy has no slow disk.
        environment.disk.quickCheckpoint = .seconds(3600)
        return environment
    }

    static let day: UInt64 = 86_400_000_000
}

/// Another device, whose writes a test makes by hand.
struct Stranger {
    let origin: Origin
    var n: UInt64 = 0

    init(_ bits: UInt64 = 0xABCD) { origin = Origin(bits: bits) }

    mutating func entry(_ value: Value?, wall: UInt64 = 1_800_000_000_000, isProvisional: Bool = false) -> Entry {
        n += 1
        return Entry(
            stamp: Stamp(isProvisional: isProvisional, wall: wall, counter: 0, origin: origin),
            n: n,
            value: value?.encoded()
        )
    }

    /// Returns a plan that takes entries into a store, with their dots in its version vector.
    func plan(_ taken: [String: Entry] = [:], dropping dropped: [String] = [], in store: Store) -> JoinPlan {
        var vector = store.vector
        for entry in taken.values { vector.insert(entry.dot) }
        return JoinPlan(
            taken: Dictionary(uniqueKeysWithValues: taken.map { (key($0), $1) }),
            dropped: dropped.map(key),
            vector: vector
        )
    }
}

extension Device {
    /// Joins what another device wrote, as the sync engine does.
    @discardableResult
    func join(_ plan: JoinPlan, cause: Cause = .joined, to identifier: String = "app") throws -> VisibleChange {
        let change = try store(identifier).stage(plan, cause: cause)
        try database.commit()
        return change
    }
}

/// SQLite's own calls, for what a test does to a database behind the engine's back.
enum SQLite {
    struct Failure: Error { let message: String }

    private typealias Open = @convention(c) (UnsafePointer<CChar>, UnsafeMutablePointer<OpaquePointer?>) -> Int32
    private typealias Close = @convention(c) (OpaquePointer?) -> Int32
    private typealias Row =
        @convention(c) (
            UnsafeMutableRawPointer?, Int32, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
            UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
        ) -> Int32
    private typealias Exec =
        @convention(c) (
            OpaquePointer?, UnsafePointer<CChar>, Row?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?
        ) -> Int32
    private typealias Message = @convention(c) (OpaquePointer?) -> UnsafePointer<CChar>

    private static func function<T>(_ name: String, _: T.Type) -> T {
        unsafeBitCast(dlsym(nil, name), to: T.self)
    }

    private final class Rows { var rows: [[String]] = [] }

    private typealias HighWater = @convention(c) (Int32) -> Int64

    /// Returns the most memory that SQLite has had since the last call, in bytes, and begins anew with what it has now.
    static func memoryPeak() -> Int { Int(function("sqlite3_memory_highwater", HighWater.self)(1)) }

    static func run(_ statements: String, _ path: String) throws -> [[String]] {
        var connection: OpaquePointer?
        _ = function("sqlite3_open", Open.self)(path, &connection)
        defer { _ = function("sqlite3_close", Close.self)(connection) }
        let rows = Rows()
        let result = function("sqlite3_exec", Exec.self)(
            connection,
            statements,
            { vector, count, values, _ in
                guard let vector else { return 1 }
                let row = (0..<Int(count)).map { column in (values?[column]).map { String(cString: $0) } ?? "NULL" }
                Unmanaged<Rows>.fromOpaque(vector).takeUnretainedValue().rows.append(row)
                return 0
            },
            Unmanaged.passUnretained(rows).toOpaque(),
            nil
        )
        guard result == 0 else {
            throw Failure(message: String(cString: function("sqlite3_errmsg", Message.self)(connection)))
        }
        return rows.rows
    }
}

/// The state of a store, to be compared before and after something that must not change it.
struct Picture: Equatable {
    let values: [Key: Value]
    let state: StoreState
    let usage: Usage
    let pending: Int
    let generation: UInt64
    let isDownloaded: Bool
    let sequence: UInt64

    init(_ store: Store) {
        values = store.values
        state = store.snapshot().state
        usage = store.usage
        pending = store.pendingChanges
        generation = store.generation
        isDownloaded = store.isDownloaded
        sequence = store.snapshot().sequence
    }
}

/// A sequence of random choices, which a seed repeats.
struct Choices: RandomNumberGenerator {
    private var generator: SplitMix

    init(seed: UInt64) { generator = SplitMix(seed: seed &* 0x9E37_79B9_7F4A_7C15) }

    mutating func next() -> UInt64 { generator.next() }
}
