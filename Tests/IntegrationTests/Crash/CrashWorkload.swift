// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import SDBus
import Testing
import UbiquitousStoreTesting

/// A client's writes to one key, and what the service has said of them.
struct KeyHistory {
    /// The values that the client wrote, oldest first; `nil` is a removal.
    private(set) var writes: [Value?] = [nil]
    /// The index of the last acknowledged write.
    private(set) var answered = 0
    /// The writes that were on the disk by a count of operations, as Synchronize or SyncNow said.
    private var durable: [(index: Int, count: Int)] = []

    mutating func ask(_ value: Value?) { writes.append(value) }
    mutating func noteAnswer() { answered = writes.count - 1 }
    mutating func noteDurable(by count: Int) { durable.append((answered, count)) }

    /// Returns whether a value may be there after a kill.
    func allows(_ value: Value?) -> Bool { writes[answered...].contains(value) }

    /// Returns whether a value may be there after a power cut that came after a count of operations.
    func allows(_ value: Value?, afterPowerCutAt count: Int) -> Bool {
        let first = durable.last { $0.count <= count }?.index ?? 0
        return writes[first...].contains(value)
    }
}

/// Two devices with a folder between them, and a journal of the laptop's operations on files.
@BusActor
final class CrashWorkload {
    private(set) var keys: [String: KeyHistory] = [:]
    let laptop: Device
    private let phone: Device
    private let directory: TemporaryDirectory

    var folder: String { directory.path + "/folder" }
    private var journalPath: String { directory.path + "/journal" }
    private let isEncrypted: Bool
    /// The account's phrase, once the account exists; `nil` if it isn't encrypted.
    private(set) var phrase: String?

    init(isEncrypted: Bool) async throws {
        self.isEncrypted = isEncrypted
        directory = try TemporaryDirectory()
        let folder = try directory.makeDirectory("folder", mode: 0o700)
        let state = try directory.makeDirectory("laptop", mode: 0o700)
        laptop = try await Self.device("laptop", state: state, journal: (directory.path + "/journal", [state, folder]))
        // The phone's state doesn't matter here, but what it writes to the folder does.
        phone = try await Self.device("phone", state: nil, journal: (directory.path + "/journal", [folder]))
    }

    static func device(_ name: String, state: String?, journal: (path: String, roots: [String])?) async throws -> Device
    {
        var options = Device.Options()
        options.name = name
        options.manifests = [ManifestText(notes)]
        options.stateDirectory = state
        if let journal {
            options.environment = try Device.diskEnvironment(journal: journal.path, roots: journal.roots)
        }
        return try Device(on: await .start(), options)
    }

    func end() {
        for device in [laptop, phone] {
            device.kill()
            device.bus.end()
        }
    }

    /// Returns the operations on files until now.
    func journal() throws -> DiskJournal { try DiskJournal(contentsOf: journalPath) }

    /// Returns roughly how many operations each of the laptop's two runs did; the phone did some of them.
    func operations(in journal: DiskJournal) -> [Int] { [restart - phoneOperations, journal.records.count - restart] }
    private var phoneOperations = 0
    private var restart = 0

    /// The run and the operation on a file before which the laptop's service is killed.
    struct Kill {
        let run: Int
        let operation: Int
        /// Whether the operation, if it is a write, is half done.
        let half: Bool
    }

    // MARK: Running

    /// Does all kinds of work, until it is finished or the laptop's service is killed.
    /// - Returns: whether all of it was finished.
    func run(_ kill: Kill? = nil) async throws -> Bool {
        try await phone.start()
        try await account(phone).join("folder://\(folder)", isEncrypted ? ["encrypt": .boolean(true)] : [:])
        if isEncrypted { phrase = try await account(phone).recoveryPhrase() }
        for number in 0..<10 { try await store(phone).set("phone \(number)", .integer(0)) }
        try await account(phone).syncNow()
        phoneOperations = DiskJournal.count(in: journalPath)
        do {
            try await startLaptop(0, kill)
            try await work()
            // The service exits in order, records its origin, and continues under it.
            let exit = try await laptop.stop()
            if kill == nil { #expect(exit == .code(0)) }
            if exit != .code(0) { return false }
            restart = DiskJournal.count(in: journalPath)
            try await startLaptop(1, kill)
            try await workOn()
            return true
        } catch  where kill != nil {
            // A waiting call fails before the process's exit can be seen.
            _ = try await laptop.finish()
            return false
        }
    }

    private func startLaptop(_ run: Int, _ kill: Kill?) async throws {
        if let kill, kill.run == run {
            try "\(kill.operation)\(kill.half ? " half" : "")"
                .write(toFile: journalPath + ".kill", atomically: true, encoding: .utf8)
        }
        try await laptop.start()
    }

    private func work() async throws {
        try await set("early", 1)
        try await join(laptop)
        for number in 0..<4 { try await set("key \(number)", 1) }
        try await set("large", Value.data([UInt8](repeating: 7, count: 100_000)))
        try await synchronize()
        try await syncNow()
        try await remove("key 1")
        try await set("early", 2)
        try await store(phone).set("phone 0", .integer(1))
        try await store(phone).remove("phone 1")
        try await account(phone).syncNow()
        try await syncNow()
        try await applyMany()
        try await synchronize()
        try await set("key 3", 2)
        try await syncNow()
        try await set("early", 3)
    }

    private func workOn() async throws {
        try await set("key 1", 3)
        try await syncNow()
        try await account(laptop).signOut()
        try await set("key 2", 2)
        try await join(laptop)
        try await set("key 0", 2)
        try await syncNow()
    }

    /// The names of the folder's markers, without those that are only being written.
    var markers: [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder + "/a")) ?? []
        return names.filter { !$0.hasSuffix(".tmp") }
    }

    /// Signs a device in to the account.
    func join(_ device: Device) async throws {
        try await account(device).join(
            "folder://\(folder)", phrase.map { ["recovery-phrase": .string(Text($0))] } ?? [:])
    }

    private func set(_ key: String, _ value: Int64) async throws { try await set(key, .integer(value)) }

    private func set(_ key: String, _ value: Value) async throws {
        keys[key, default: KeyHistory()].ask(value)
        try await store(laptop).set(key, value)
        keys[key]?.noteAnswer()
    }

    private func remove(_ key: String) async throws {
        keys[key, default: KeyHistory()].ask(nil)
        try await store(laptop).remove(key)
        keys[key]?.noteAnswer()
    }

    private func applyMany() async throws {
        let values = (0..<40).map { (key: "many \($0)", value: Value.integer($0)) }
        for (key, value) in values { keys[key, default: KeyHistory()].ask(value) }
        try await store(laptop).apply(values) { _ in }
        for (key, _) in values { keys[key]?.noteAnswer() }
    }

    private func synchronize() async throws {
        try await store(laptop).synchronize()
        noteDurable()
    }

    private func syncNow() async throws {
        try await account(laptop).syncNow()
        noteDurable()
    }

    /// Notes that all acknowledged writes are on the disk, at the latest after the operations done by now.
    private func noteDurable() {
        let count = DiskJournal.count(in: journalPath)
        for key in keys.keys { keys[key]?.noteDurable(by: count) }
    }

    func store(_ device: Device) throws -> StoreClient { try BusClient(device.bus).store(notes) }
    func account(_ device: Device) throws -> AccountClient { try BusClient(device.bus).account }
}
