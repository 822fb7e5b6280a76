// SPDX-License-Identifier: Apache-2.0

import AppManifest
import Foundation
import Logging
import PropertyList
import Testing

@testable import StoreDaemon

/// The record of the keys that apps keep on the device.
@Suite struct RememberedLocalKeysTests {
    private let directory = FileManager.default.temporaryDirectory.appending(path: "local-keys-\(UUID())").path
    private let logger = Logger(label: "") { _ in SwiftLogNoOpLogHandler() }

    private var user: UserDirectory { UserDirectory(of: 7, in: directory) }

    init() throws {
        try FileManager.default.createDirectory(atPath: directory + "/u7", withIntermediateDirectories: true)
    }

    private func manifest(_ store: String, _ keys: [String]) throws -> Manifest {
        try Manifest([
            "com.apple.developer.ubiquity-kvstore-identifier": .string(Text(store)),
            "application-identifier": .string(Text(store)),
            "org.example.UbiquitousStore.local-keys": .array(keys.map { .string(Text($0)) }),
        ])
    }

    @Test func `what many apps keep here, the same keys or not, is read again`() throws {
        let keys = (0..<15).map { String(repeating: "k", count: 57) + "\(100 + $0)" }
        var remembered = RememberedLocalKeys(of: user)
        let stores = (0..<200).map { "org.example.App\($0)" }
        for store in stores {
            let hasRoom = remembered.note([try manifest(store, keys)], of: store)
            #expect(hasRoom)
        }
        let unsaved = remembered.takeUnsaved()
        try #require(unsaved).write()
        let rest = remembered.takeUnsaved()
        #expect(rest == nil)
        let read = RememberedLocalKeys(of: user)
        #expect(read.failure == nil && !read.isIncomplete)
        for store in stores { #expect(read.patterns(of: store, besides: []) == keys) }
        try FileManager.default.removeItem(atPath: directory)
    }

    @Test func `a record has a bound, and what is in it may still be replaced`() throws {
        var remembered = RememberedLocalKeys(of: user)
        func note(_ store: Int, _ keys: Int) throws -> Bool {
            let keys = (0..<keys).map { "\($0)" + String(repeating: "k", count: 60) }
            let hasRoom = remembered.note(
                [try manifest("org.example.App\(store)", keys)], of: "org.example.App\(store)")
            #expect(hasRoom == (remembered.patterns(of: "org.example.App\(store)", besides: []).count == keys.count))
            return hasRoom
        }
        var stores = 0
        while try note(stores, 250) { stores += 1 }
        #expect(stores > 10 && stores < 20)
        let fits = try (note(0, 249), note(1, 0), note(stores, 250))
        #expect(fits == (true, true, true))
        try FileManager.default.removeItem(atPath: directory)
    }

    @Test func `a store that is removed is forgotten, except for what manifests say`() throws {
        var remembered = RememberedLocalKeys(of: user)
        let store = "org.example.App"
        let (own, other) = (try manifest(store, ["own"]), try manifest("org.example.Other", ["other"]))
        _ = remembered.note([own, other], of: store)
        _ = remembered.takeUnsaved()
        remembered.forget(store, besides: [own, other])
        let same = remembered.takeUnsaved()
        #expect(same == nil, "the next opening of the store has nothing to write")
        remembered.forget(store, besides: [own])
        #expect(remembered.patterns(of: store, besides: []) == ["own"])
        try FileManager.default.removeItem(atPath: directory)
    }

    @Test(arguments: ["", "bplist00", "junk", "large"])
    func `a damaged record is set aside, and not taken for an empty one`(content: String) throws {
        let content = content == "large" ? String(repeating: "x", count: PrivateFile.largest + 1) : content
        let path = user.path + "/local-keys.plist"
        try content.write(toFile: path, atomically: false, encoding: .utf8)
        var remembered = RememberedLocalKeys(of: user)
        remembered.setAsideDamaged(logger)
        #expect(remembered.isIncomplete && remembered.failure == nil)
        #expect(try String(contentsOfFile: path + ".damaged", encoding: .utf8) == content)
        let isKept = remembered.keep([try Key("window")], of: "org.example.App")
        let areKept = remembered.keep(try (0..<2000).map { try Key("key\($0)") }, of: "org.example.Another")
        #expect(isKept && !areKept)
        let unsaved = remembered.takeUnsaved()
        try #require(unsaved).write()
        remembered = RememberedLocalKeys(of: user)
        remembered.setAsideDamaged(logger)
        #expect(remembered.isIncomplete && remembered.patterns(of: "org.example.App", besides: []) == ["window"])
        // The app's own manifest gives up only what it has declared.
        let own = try manifest("org.example.App", ["other"])
        _ = remembered.note([own], of: "org.example.App")
        #expect(remembered.patterns(of: "org.example.App", besides: [own]) == ["window"])
        try FileManager.default.removeItem(atPath: directory)
    }
}
