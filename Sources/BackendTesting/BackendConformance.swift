// SPDX-License-Identifier: Apache-2.0

// What every backend has to stand, as named cases that know nothing of a test framework:
//
//     @Test(arguments: BackendConformance.cases)
//     func conforms(to conformance: BackendConformance) async throws {
//         try await conformance.run(on: BackendPlace { MyBackend(server) })
//     }
//
// C1 to C5 are the sentences at the head of RemoteBackend.swift.

internal import PropertyList
public import Replication

/// A place that is empty, and how a device comes to a backend for it.
public struct BackendPlace: Sendable {
    /// Makes a backend on the place: for another device, or for one that was started anew.
    public let makeBackend: @Sendable () throws -> any RemoteBackend
    /// Empties the place, as somebody does who deletes a folder's files; `nil` if that can't happen.
    public let empty: (@Sendable () async throws -> Void)?

    /// An empty place.
    public init(
        makeBackend: @escaping @Sendable () throws -> any RemoteBackend,
        empty: (@Sendable () async throws -> Void)? = nil
    ) {
        self.makeBackend = makeBackend
        self.empty = empty
    }
}

/// Something that a backend has to stand.
public struct BackendConformance: Sendable, CustomStringConvertible {
    /// What it is, as a sentence.
    public let description: String
    private let body: @Sendable (BackendPlace) async throws -> Void

    /// Throws a ``Failure`` if the backend does not stand it, or what the backend throws.
    /// - Parameter place: empty, and nobody else's.
    public func run(on place: BackendPlace) async throws { try await body(place) }

    /// What was found.
    public struct Failure: Error, CustomStringConvertible {
        /// What should have been so.
        public let description: String
    }

    init(_ description: String, _ body: @escaping @Sendable (BackendPlace) async throws -> Void) {
        (self.description, self.body) = (description, body)
    }

    static func expect(_ condition: Bool, _ sentence: String) throws {
        if !condition { throw Failure(description: sentence) }
    }

    /// Expects a failure of a kind.
    static func expect(_ code: RemoteError.Code, _ body: () async throws -> Void) async throws {
        do { try await body() } catch let error as RemoteError where error.code == code { return }
        throw Failure(description: "it fails with the code \(code)")
    }

    /// All of them.
    public static let cases: [BackendConformance] =
        accounts + exchanges + failures

    /// Tries again what a server has no time for, as the service does: some lock a file that another one writes.
    @discardableResult
    private static func again<Result>(_ body: () async throws -> Result) async throws -> Result {
        for pause in 0..<6 {
            do { return try await body() } catch let error as RemoteError where error.code == .unavailable {
                try await Task.sleep(for: .milliseconds(50 << pause))
            }
        }
        return try await body()
    }

    static let store = "org.example.Notes"

    /// Devices that have signed in, the first of which has made the account.
    public static func devices(_ count: Int, _ place: BackendPlace) async throws -> [BackendDevice] {
        var devices: [BackendDevice] = []
        for number in 0..<count {
            let device = BackendDevice("\(number)", seed: UInt64(number + 1), backend: try place.makeBackend())
            try await device.signIn(creating: number == 0)
            try await device.sync()
            devices.append(device)
        }
        return devices
    }

    /// Passes until all hold the same, which takes three at most.
    public static func settle(_ devices: [BackendDevice]) async throws {
        for _ in 0..<3 {
            for device in devices { try await device.sync() }
        }
        for device in devices { try await device.pull() }
        for device in devices {
            try expect(device.stores == devices[0].stores, "\(device.name) holds what \(devices[0].name) holds")
        }
    }
}

// MARK: - Accounts

extension BackendConformance {
    static let accounts: [BackendConformance] = [
        BackendConformance("an empty place has no account, unless one is to be made") { place in
            let backend = try place.makeBackend()
            try await expect(.noAccount) { _ = try await backend.open(creatingAccount: false) }
            let made = try await backend.open(creatingAccount: true)
            try expect(made.isNew, "an account that was made is new")
            let found = try await place.makeBackend().open(creatingAccount: true)
            try expect(found.isNamed(made.identifier), "it is found, and no second one made")
            try expect(found.isNew, "and is new until somebody publishes")
            let device = BackendDevice("A", seed: 1, backend: try place.makeBackend())
            try await device.signIn(creating: false)
            device.set(store, "a", .integer(1))
            try await device.sync()
            let used = try await place.makeBackend().open(creatingAccount: true)
            try expect(!used.isNew && used.isNamed(made.identifier), "and no more after that")
        },
        BackendConformance("devices that make the account at once come to have one") { place in
            let devices = try (0..<3).map {
                BackendDevice("\($0)", seed: UInt64($0 + 1), backend: try place.makeBackend())
            }
            let backends = devices.map(\.backend)
            let accounts = try await withThrowingTaskGroup(of: (Int, RemoteAccount).self) { group in
                for (number, backend) in backends.enumerated() {
                    group.addTask { (number, try await again { try await backend.open(creatingAccount: true) }) }
                }
                var accounts: [Int: RemoteAccount] = [:]
                for try await (number, account) in group { accounts[number] = account }
                return accounts
            }
            try expect(accounts.count == 3, "each finds one")
            for device in devices {
                try await again { try await device.signIn(creating: true) }
                device.set(store, device.name, .integer(1))
                try await again { try await device.sync() }
            }
            try await settle(devices)
            try expect(Set(devices.map(\.account)).count == 1, "all have one")
            try expect(devices[0].values(store).count == 3, "and what each wrote is in it")
        },
        BackendConformance("a place that was emptied is reported, and not obeyed") { place in
            guard let empty = place.empty else { return }
            let device = try await devices(1, place)[0]
            device.set(store, "a", .integer(1))
            try await device.sync()
            try await empty()
            try await expect(.reset) { try await device.pull() }
            try await expect(.reset) { try await device.push() }
            try expect(device.values(store) == ["a": .integer(1)], "nothing is lost on the device")
        },
        BackendConformance("what is published for another account is refused") { place in
            let device = try await devices(1, place)[0]
            let backend = try place.makeBackend()
            _ = try await backend.open(creatingAccount: false)
            let publication = Publication(
                account: String(repeating: "0", count: 31) + "1", origin: device.origin, formerOrigins: [], counts: [:],
                device: RemoteDevice(identifier: "x", name: "x"), stores: [], time: 1)
            try await expect(.reset) { _ = try await backend.push(publication) }
        },
        BackendConformance("a backend that was closed does nothing") { place in
            let device = try await devices(1, place)[0]
            await device.backend.close()
            try await expect(.unavailable) { try await device.pull() }
            try await expect(.unavailable) { try await device.push() }
        },
    ]
}

// MARK: - Exchanges

extension BackendConformance {
    static let exchanges: [BackendConformance] = [
        BackendConformance("C1: what was pushed is returned by every later pull") { place in
            let (a, b) = try await pair(place)
            a.set(store, "a", .integer(1))
            a.set("org.example.Other", "b", .data([UInt8](repeating: 7, count: 200_000)))
            try await a.sync()
            try expect(try await b.pull(), "the pull is complete")
            try expect(b.stores == a.stores, "all of it is there")
            // To one who has seen nothing, after the writer is gone, too.
            await a.backend.close()
            let late = BackendDevice("late", seed: 99, backend: try place.makeBackend())
            try await late.signIn(creating: false)
            try expect(try await late.sync(), "the first pull is complete")
            try expect(late.stores == a.stores, "all of it is there for a new device")
        },
        BackendConformance("C1: a deletion arrives, and stays after its tombstone is forgotten") { place in
            let (a, b) = try await pair(place)
            a.set(store, "a", .integer(1))
            a.set(store, "b", .integer(1))
            try await settle([a, b])
            b.set(store, "a", nil)
            try await settle([a, b])
            try expect(a.values(store) == ["b": .integer(1)], "it is deleted everywhere")
            b.forgetTombstones(store)
            b.set(store, "c", .integer(1))
            try await settle([a, b])
            try expect(a.values(store) == ["b": .integer(1), "c": .integer(1)], "and never comes back")
        },
        BackendConformance("C1: what was deleted takes no write along that did not know of it") { place in
            let devices = try await devices(3, place)
            // In one of several stores states are joined in the order in which that could happen.
            for number in 0..<8 { devices[0].set("\(store)\(number)", "k", .integer(1)) }
            try await devices[0].sync()
            try await devices[1].sync()
            for number in 0..<8 {
                devices[1].set("\(store)\(number)", "k", nil)
                devices[1].forgetTombstones("\(store)\(number)")
            }
            try await devices[1].push()
            devices[2].time -= 3_600_000_000
            for number in 0..<8 { devices[2].set("\(store)\(number)", "k", .integer(2)) }
            try await devices[2].push()
            let late = BackendDevice("late", seed: 99, backend: try place.makeBackend())
            try await late.signIn(creating: false)
            try await late.pull()
            for number in 0..<8 {
                try expect(late.values("\(store)\(number)") == ["k": .integer(2)], "the later write is there")
            }
        },
        BackendConformance("C2: values and keys that break every rule are passed on as they came") { place in
            let (a, b) = try await pair(place)
            for key in ["", "nul\0", String(repeating: "k", count: 4000), "é", "e\u{301}", "line\nfeed"] {
                a.set(store, key, .integer(1))
            }
            a.set(store, "large", .data([UInt8](repeating: 1, count: 2 << 20)))
            a.set(store, "nan", .real(.nan))
            try await a.sync()
            try await b.pull()
            try expect(b.stores == a.stores, "byte by byte")
        },
        BackendConformance("C3: a version vector comes with the entries that it covers, whoever publishes") { place in
            let devices = try await devices(3, place)
            for round in 0..<12 {
                let writer = devices[round % 3]
                writer.set(store, "\(round)", .data([UInt8](repeating: UInt8(round), count: 3000)))
                try await writer.sync()
                let reader = devices[(round + 1) % 3]
                try await reader.pull()
                for (key, entry) in writer.stores[store]?.entries ?? [:]
                where reader.stores[store]?.vector.contains(entry.dot) == true {
                    try expect(reader.stores[store]?.entries[key] != nil, "what was seen is there")
                }
            }
            try await settle(devices)
            try expect(devices[0].values(store).count == 12, "nothing is lost")
        },
        BackendConformance("C4: pulling and pushing again changes nothing") { place in
            let (a, b) = try await pair(place)
            a.set(store, "a", .integer(1))
            for _ in 0..<3 { try await a.push() }
            for _ in 0..<3 { try await b.pull() }
            let before = b.stores
            for _ in 0..<3 {
                try await a.push()
                try await b.sync()
                try await b.push()
                try await a.sync()
            }
            try expect(b.stores == before && a.stores == before, "both hold what they held")
        },
        BackendConformance("C5: devices that write at once lose nothing") { place in
            let devices = try await devices(4, place)
            for round in 0..<5 {
                for device in devices {
                    device.set(store, "\(device.name) \(round)", .integer(Int64(round)))
                    device.set(store, "shared", .integer(Int64(round)))
                }
                for device in devices.reversed() { try await device.push() }
            }
            try await settle(devices)
            try expect(devices[0].values(store).count == 21, "nothing is lost")
        },
        BackendConformance("what is joined is not offered again, nor to one who receives a cursor") { place in
            let (a, b) = try await pair(place)
            a.set(store, "a", .integer(1))
            try await a.sync()
            let pull = try await b.backend.pull(after: nil, as: b.origin)
            let offered = pull.stores
            for store in offered { _ = try await pull.change(of: store) }
            let result = await pull.finish(joined: Set(offered))
            try expect(offered.contains(store) && result.isComplete, "the first pull offers it")
            let again = try await b.backend.pull(after: result.cursor, as: b.origin)
            try expect(again.stores.isEmpty, "the second does not")
            _ = await again.finish(joined: [])
            let other = try place.makeBackend()
            _ = try await other.open(creatingAccount: false)
            let restarted = try await other.pull(after: result.cursor, as: b.origin)
            try expect(restarted.stores.isEmpty, "nor to a process that has nothing but the cursor")
        },
        BackendConformance("what was not joined is offered until it is") { place in
            let (a, b) = try await pair(place)
            a.set(store, "a", .integer(1))
            a.set("org.example.Other", "b", .integer(1))
            try await a.sync()
            var cursor: [UInt8]?
            for _ in 0..<2 {
                let pull = try await b.backend.pull(after: cursor, as: b.origin)
                try expect(pull.stores.contains(store), "a store that was left out is offered")
                for store in pull.stores { _ = try await pull.change(of: store) }
                let result = await pull.finish(joined: ["org.example.Other"])
                try expect(result.isComplete, "and the pull is complete: everything was read")
                cursor = result.cursor
            }
        },
        BackendConformance("a device's name and origin are told") { place in
            let (a, b) = try await pair(place)
            a.set(store, "a", .integer(1))
            try await a.sync()
            let pull = try await b.backend.pull(after: nil, as: b.origin)
            try expect(pull.devices[a.origin]?.name == a.name, "the name is that which was published")
        },
    ]

    static func pair(_ place: BackendPlace) async throws -> (BackendDevice, BackendDevice) {
        let devices = try await devices(2, place)
        return (devices[0], devices[1])
    }
}

// MARK: - Restarts, clones, cleaning up

extension BackendConformance {
    static let failures: [BackendConformance] = [
        BackendConformance("a device that goes on under another origin loses nothing, and leaves nothing") { place in
            let (a, b) = try await pair(place)
            for round in 0..<5 {
                a.set(store, "\(round)", .integer(1))
                try await a.sync()
                a.restart(with: try place.makeBackend())
                try await a.signIn(creating: false)
            }
            a.set(store, "last", .integer(1))
            try await settle([a, b])
            let pull = try await b.backend.pull(after: nil, as: b.origin)
            try expect(pull.devices.keys.count { $0 != b.origin } <= 1, "former publications are gone")
        },
        BackendConformance("a clone is noticed, and what it wrote is not lost") { place in
            let (a, b) = try await pair(place)
            a.set(store, "a", .integer(1))
            try await settle([a, b])
            // Another process publishes under the same origin, what a device would that was copied while it ran.
            let clone = try place.makeBackend()
            _ = try await clone.open(creatingAccount: false)
            let first = try await clone.pull(after: nil, as: a.origin)
            for store in first.stores { _ = try await first.change(of: store) }
            _ = await first.finish(joined: Set(first.stores))
            var state = a.stores[store] ?? StoreState()
            let other = Origin(bits: 77)
            let stamp = Stamp(after: nil, wall: a.time / 1000, origin: other, isProvisional: false)
            state.entries[Key(unchecked: "clone")] = Entry(stamp: stamp, n: 1, value: Value.integer(2).encoded())
            state.vector.insert(Dot(origin: other, n: 1))
            let push = try await clone.push(
                Publication(
                    account: a.account, origin: a.origin, formerOrigins: [], counts: [:],
                    device: RemoteDevice(identifier: a.name, name: a.name),
                    stores: [AccountStore(identifier: store, sequence: 9, published: 0)], time: a.time))
            for identifier in push.stores {
                try await push.upload(StoreSnapshot(identifier: identifier, state: state, sequence: 9))
            }
            try await push.finish()
            let origin = a.origin
            a.set(store, "b", .integer(1))
            for _ in 0..<3 {
                do { try await a.sync() } catch let error as RemoteError where error.code == .unavailable { continue }
            }
            try expect(a.origin != origin, "the device goes on under another origin")
            try await settle([a, b])
            try expect(b.values(store).keys.sorted() == ["a", "b", "clone"], "nothing is lost")
        },
        BackendConformance("cleaning up harms nobody, however often, whoever does it") { place in
            let devices = try await devices(3, place)
            for round in 0..<40 {
                let device = devices[round % 3]
                device.set(store, "\(round % 7)", .data([UInt8](repeating: UInt8(round), count: 2000)))
                if round % 5 == 0 { device.set(store, "\(round % 3)", nil) }
                try await device.sync()
                for device in devices { device.time += 3 * 86_400_000_000 }
                try await devices[(round + 1) % 3].collectGarbage()
                try await devices[(round + 1) % 3].collectGarbage()
            }
            try await settle(devices)
            let late = BackendDevice("late", seed: 99, backend: try place.makeBackend())
            try await late.signIn(creating: false)
            try expect(try await late.sync(), "a new device reads all of it")
            try expect(late.values(store) == devices[0].values(store), "and sees what the others see")
        },
        BackendConformance("a device that was forgotten and comes back loses nothing") { place in
            let (a, b) = try await pair(place)
            b.set(store, "b", .integer(1))
            try await settle([a, b])
            a.set(store, "a", .integer(1))
            try await a.sync()
            try await a.collectGarbage(forgetting: [b.origin])
            b.set(store, "c", .integer(1))
            try await settle([a, b])
            try expect(a.values(store).count == 3, "nothing is lost")
        },
    ]
}
