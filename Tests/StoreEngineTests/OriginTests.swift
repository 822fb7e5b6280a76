// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Replication
import StoreEngine
import Testing

@Suite struct OriginTests {
    let device: Device

    init() throws { device = try Device() }

    private func copy(_ directory: String, to other: String) throws {
        try? FileManager.default.removeItem(atPath: other)
        try FileManager.default.copyItem(atPath: directory, toPath: other)
    }

    private func open(_ directory: String) throws -> UserDatabase {
        try UserDatabase(in: directory, runtimeDirectory: device.runtime, environment: device.clock.environment)
    }

    /// Replaces the files in the database's directory by a backup's. The directory itself stays the same one.
    private func restore(_ backup: String) throws {
        device.close()
        for name in try FileManager.default.contentsOfDirectory(atPath: device.directory) {
            try FileManager.default.removeItem(atPath: device.directory + "/" + name)
        }
        for name in try FileManager.default.contentsOfDirectory(atPath: backup) {
            try FileManager.default.copyItem(atPath: backup + "/" + name, toPath: device.directory + "/" + name)
        }
        try device.reopen()
    }

    @Test func `a restart goes on under the origin, published or not`() throws {
        try device.write([("k", .integer(1))])
        let origin = device.database.origin
        try device.reopen()
        #expect(device.database.origin == origin)
        try device.database.origins.willPublish()
        try device.reopen()
        #expect(device.database.origin == origin)
        #expect(try device.database.origins.former().isEmpty)
        try device.write([("k", .integer(2))])
        #expect(try device.store().version(of: key("k"))?.stamp.origin == origin)
    }

    @Test func `a reboot brings a new origin, and the former one is known`() throws {
        try device.write([("k", .integer(1))])
        try device.database.origins.willPublish()
        let origin = device.database.origin
        device.close()
        for name in try FileManager.default.contentsOfDirectory(atPath: device.runtime) {
            try FileManager.default.removeItem(atPath: device.runtime + "/" + name)
        }
        try device.reopen()
        #expect(device.database.origin != origin)
        #expect(try device.database.origins.former() == [origin])
        try device.write([("k", .integer(2))])
        let entry = try #require(device.store().version(of: key("k")))
        #expect(entry.stamp.origin == device.database.origin)
        #expect(try device.store().vector.contains(Dot(origin: origin, n: 1)))
    }

    @Test func `without a runtime directory every start has a new origin`() throws {
        try device.write([("k", .integer(1))])
        try device.database.origins.willPublish()
        let origin = device.database.origin
        try device.reopen(runtime: false)
        #expect(device.database.origin != origin)
    }

    @Test func `a start after a crash has a new origin`() throws {
        try device.write([("k", .integer(1))])
        try device.reopen()
        // A second database object finds what a crash of the first would leave.
        let database = try open(device.directory)
        defer { database.close() }
        #expect(database.origin != device.database.origin)
    }

    @Test func `a record that makes no sense is none`() throws {
        try device.write([("k", .integer(1))])
        let origin = device.database.origin
        device.close()
        let name = try #require(FileManager.default.contentsOfDirectory(atPath: device.runtime).first)
        let record = URL(filePath: device.runtime + "/" + name)
        let word = try Data(contentsOf: record)
        for text in [Data(), Data("x".utf8), word.dropLast(), word + word, Data(repeating: 0x61, count: 100)] {
            try text.write(to: record)
            let database = try open(device.directory)
            #expect(database.origin != origin, "\(text)")
            database.close()
        }
        try word.write(to: record)
        let database = try open(device.directory)
        #expect(database.origin == origin)
        database.close()
    }

    @Test func `a start that wrote nothing leaves the database as it was`() throws {
        try device.write([("k", .integer(1))])
        device.close()
        let before = try Data(contentsOf: URL(filePath: device.file))
        let origin = device.database.origin
        try device.reopen()
        try device.reopen()
        #expect(device.database.origin == origin)
        device.close()
        #expect(try Data(contentsOf: URL(filePath: device.file)) == before)
    }

    @Test(arguments: [true, false])
    func `a restored backup gets a new origin, whether what it lacks was uploaded or only copied`(
        isUploaded: Bool
    ) throws {
        try device.write([("k", .integer(1))])
        try device.database.origins.willPublish()
        let origin = device.database.origin
        device.close()
        try copy(device.directory, to: device.root + "/backup")
        try device.reopen()
        #expect(device.database.origin == origin)
        try device.write([("k", .integer(2))])
        if isUploaded { try device.database.origins.willPublish() }
        let lost = try #require(device.store().entry(for: key("k"))?.dot)
        try restore(device.root + "/backup")
        #expect(device.database.origin != origin)
        #expect(try device.store().value(for: key("k")) == .integer(1))
        try device.write([("k", .integer(3))])
        #expect(try device.store().entry(for: key("k"))?.dot != lost)
    }

    @Test func `a copy beside the original gets an origin of its own`() throws {
        try device.write([("k", .integer(1))])
        try device.database.origins.willPublish()
        device.close()
        try copy(device.directory, to: device.root + "/copy")
        let clone = try open(device.root + "/copy")
        defer { clone.close() }
        try device.reopen()
        #expect(clone.origin != device.database.origin)
        #expect(try clone.origins.former() == [device.database.origin])
        // Neither disturbs the other's record.
        let store = try clone.store("app")
        try store.stage(setting: [(key("k"), .integer(2))], removing: [])
        try clone.commit()
        try clone.origins.willPublish()
        let origin = device.database.origin
        try device.reopen()
        #expect(device.database.origin == origin)
    }

    @Test func `what was written before the account's values go under a copy's own origin`() throws {
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.write([("k", .integer(1)), ("removed", .integer(1))])
        try device.write([("k", .integer(2))], removing: ["removed"])
        let vector = try device.store().vector
        device.close()
        try copy(device.directory, to: device.root + "/copy")
        let clone = try open(device.root + "/copy")
        let store = try clone.store("app")
        #expect(store.vector == VersionVector([clone.origin: 4]))
        #expect(store.entry(for: key("k"))?.stamp.origin == clone.origin)
        #expect(store.entry(for: key("removed"))?.stamp.origin == clone.origin)
        #expect(store.value(for: key("k")) == .integer(2))
        // The origin is the same after a restart.
        let origin = clone.origin
        clone.close()
        let again = try open(device.root + "/copy")
        #expect(again.origin == origin)
        #expect(try again.summaries.pendingChanges() == 2)
        again.close()
        try device.reopen()
        #expect(try device.store().vector == vector)
    }

    @Test func `what was written under a former origin keeps its dots, by which others know it`() throws {
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.database.progress.completeDownload(cursor: [1])
        try device.write([("k", .integer(1))])
        let dot = try device.store().entry(for: key("k"))?.dot
        try device.reopen(runtime: false)
        #expect(try device.store().entry(for: key("k"))?.dot == dot)
    }

    @Test func `no dot is used twice by a store that is forgotten, cleared or entered again`() throws {
        var seen: [Dot: Value] = [:]
        func note() throws {
            for (_, entry) in try device.store().snapshot().state.entries {
                guard let bytes = entry.value else { continue }
                let value = try Value(encoded: bytes)
                #expect(seen.updateValue(value, forKey: entry.dot) ?? value == value)
            }
        }
        for round in 0..<4 {
            try device.write([("k", .integer(Int64(round)))])
            try note()
            _ = try device.database.enter(account: "A", bringingValues: false)
            try note()
            try device.write([("k", .integer(Int64(100 + round)))])
            try note()
            _ = try device.database.forget(store: "app")
            try device.write([("k", .integer(Int64(200 + round)))])
            try note()
            _ = try device.database.clearAccount()
        }
        #expect(seen.count >= 12)
    }

    /// The device no longer knows what it published under the former origin, and would use its dots again.
    @Test(arguments: ["clear", "forget", "leave"])
    func `an origin that was left does not come back, though the service ends at once`(way: String) throws {
        let device = try Device()
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.write([("k", .integer(1))])
        try device.database.origins.willPublish()
        let left = device.database.origin
        switch way {
        case "clear": _ = try device.database.clearAccount()
        case "forget": _ = try device.database.forget(store: "app")
        default: try device.database.leaveOrigin()
        }
        #expect(device.database.origin != left)
        try device.reopen()
        #expect(device.database.origin != left)
    }
}
