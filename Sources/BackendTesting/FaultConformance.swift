// SPDX-License-Identifier: Apache-2.0

internal import Blobs
internal import PropertyList
internal import Replication
package import Sealing

/// A case that a backend on blobs must pass while its storage fails. It is the blob backend's own test, and a pattern
/// for tests of other backends.
public struct FaultConformance: Sendable, CustomStringConvertible {
    /// What goes wrong, as a sentence.
    public let description: String
    private let decide: @Sendable (MemoryStorage.Request, UInt64) -> MemoryStorage.Fault?

    /// All cases.
    public static let cases: [FaultConformance] = [
        FaultConformance("requests are lost") { _, random in random % 4 == 0 ? .lost : nil },
        FaultConformance("replies to requests that were carried out are lost") { _, random in
            random % 4 == 0 ? .replyLost : nil
        },
        FaultConformance("requests arrive twice") { _, random in random % 3 == 0 ? .repeated : nil },
        FaultConformance("writes arrive long after they were given up") { request, random in
            request.action == .put && random % 4 == 0 ? .delayed : nil
        },
        FaultConformance("deletions arrive long after they were given up") { request, random in
            request.action == .delete && random % 2 == 0 ? .delayed : nil
        },
        FaultConformance("blobs are incomplete") { request, random in
            request.action == .put && random % 5 == 0 ? .torn(Int(random % 400)) : nil
        },
        FaultConformance("reads return earlier contents") { request, random in
            request.action == .get && random % 4 == 0 ? .stale : nil
        },
        FaultConformance("listings lack names") { request, random in
            request.action == .list && request.name != "a" && random % 3 == 0 ? .partial : nil
        },
        FaultConformance("the remote seems empty") { request, random in
            request.action != .check && !request.name.hasPrefix("a") && random % 5 == 0 ? .blind : nil
        },
        FaultConformance("all of that") { request, random in
            let faults: [MemoryStorage.Fault] = [.lost, .replyLost, .repeated, .stale]
            return random % 6 == 0 ? faults[Int(random / 6 % 4)] : nil
        },
    ]

    init(
        _ description: String,
        _ decide: @escaping @Sendable (MemoryStorage.Request, UInt64) -> MemoryStorage.Fault?
    ) {
        (self.description, self.decide) = (description, decide)
    }

    /// Lets three devices work while the storage fails, then heals it, and expects that all hold the same and that
    /// nothing that was written is lost.
    /// - Throws: a ``BackendConformance/Failure`` if that isn't so, or an error that asks a user to act.
    public func run(seed: UInt64) async throws { try await run(seed: seed, .none) }

    /// Runs the case for an account that may be encrypted.
    /// - Throws: as ``run(seed:)`` does.
    package func run(seed: UInt64, _ protection: Protection) async throws {
        let storage = MemoryStorage()
        let remote = Self.remote(storage, protection)
        let devices = try await BackendConformance.devices(3, remote)
        // The generator is not a device's, so the faults are the same for the same seed.
        let dice = Dice(seed: seed)
        storage.onRequest { [decide] request in decide(request, dice.roll()) }
        var written = Set<String>()
        for step in 0..<90 {
            let device = devices[Int(dice.roll() % 3)]
            switch dice.roll() % 8 {
            case 0...2:
                let key = "\(device.name) \(step)"
                device.set(BackendConformance.store, key, .data([UInt8](repeating: UInt8(step), count: 900)))
                written.insert(key)
            case 3: device.set(BackendConformance.store, "shared", .integer(Int64(step)))
            case 4: storage.arrive()
            case 5: try await Self.attempt { try await device.collectGarbage() }
            default: try await Self.attempt { try await device.sync() }
            }
            device.time += 3_600_000_000
        }
        storage.onRequest(nil)
        storage.arrive()
        try await heal(devices)
        let keys = Set(devices[0].values(BackendConformance.store).keys)
        try BackendConformance.expect(keys.isSuperset(of: written), "nothing that was written is lost")
        let late = BackendDevice("late", seed: 99, backend: try remote.makeBackend())
        try await late.signIn(creating: false)
        try BackendConformance.expect(try await late.sync(), "a new device reads all of it")
        try BackendConformance.expect(late.stores == devices[0].stores, "and holds what the others hold")
        storage.requests = []
        for device in devices { try await device.sync() }
        try BackendConformance.expect(storage.bytesWritten == 0, "and then all is quiet")
    }

    /// Syncs until everything is repaired. Every twentieth pull trusts no version, and finds out which of the device's
    /// own blobs are missing; corrupt ones are removed after a day, and then are missing.
    private func heal(_ devices: [BackendDevice]) async throws {
        for round in 0..<70 {
            for device in devices {
                try await Self.attempt { try await device.sync() }
                guard round % 10 == 0 else { continue }
                device.time += 86_400_000_000
                try await Self.attempt { try await device.collectGarbage() }
            }
        }
        for device in devices {
            try BackendConformance.expect(try await device.pull(), "\(device.name) reads everything")
            try BackendConformance.expect(device.stores == devices[0].stores, "\(device.name) holds the same")
        }
    }

    private static func attempt(_ body: () async throws -> Void) async throws {
        do { try await body() } catch let error as RemoteError {
            // These mean that something is not there, or not whole, for now. Any other error asks the user to act.
            if ![.unavailable, .damaged, .denied].contains(error.code) { throw error }
        }
    }

    /// Makes a remote in a storage.
    public static func remote(_ storage: MemoryStorage) -> EmptyRemote { remote(storage, .none) }

    /// Makes a remote in a storage.
    @available(*, deprecated, renamed: "remote(_:)")
    public static func place(_ storage: MemoryStorage) -> EmptyRemote { remote(storage) }

    /// Makes a remote in a storage, for an account that may be encrypted.
    package static func remote(_ storage: MemoryStorage, _ protection: Protection) -> EmptyRemote {
        let dice = Dice(seed: 5)
        return EmptyRemote {
            BlobBackend(
                storage: storage, environment: Environment(time: { 1_700_000_000_000_000 }, random: { dice.roll() }),
                protection: protection)
        } empty: {
            storage.blobs = [:]
        }
    }
}
