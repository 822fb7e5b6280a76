// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Synchronization
import Testing
import UbiquitousStoreTesting

@testable import UbiquitousStore

@Suite(.serialized, .timeLimit(.minutes(30)))
struct KeyValueStoreTests {
    // MARK: Getters

    /// What each typed getter returns for each stored type: the object, bool, longLong, double.
    private static let table: [(value: Value, object: any Sendable, bool: Bool, longLong: Int64, double: Double)] = [
        (.boolean(true), true, true, 1, 1),
        (.boolean(false), false, false, 0, 0),
        (.integer(0), 0, false, 0, 0),
        (.integer(1), 1, true, 1, 1),
        (.integer(-7), -7, true, -7, -7),
        (.integer(.max), Int64.max, true, .max, 0x1p63),
        (.integer(.min), Int64.min, true, .min, -0x1p63),
        (.real(0), 0.0, false, 0, 0),
        (.real(1.9), 1.9, true, 1, 1.9),
        (.real(-1.9), -1.9, true, -1, -1.9),
        // As in Apple's NSNumber, not Linux's.
        (.real(0.5), 0.5, true, 0, 0.5),
        (.real(.infinity), Double.infinity, true, .min, .infinity),
        (.string("yes"), "yes", false, 0, 0),
        (.string("1"), "1", false, 0, 0),
        (.data([1]), Data([1]), false, 0, 0),
        (.date(1), Date(timeIntervalSinceReferenceDate: 1), false, 0, 0),
        (.array([1]), [1], false, 0, 0),
        (.dictionary(["a": 1]), ["a": 1], false, 0, 0),
    ]

    @Test func `typed getters of every stored type are as in the table`() async throws {
        try await Desk.with { desk in
            let other = try await desk.otherProcess()
            for (index, row) in Self.table.enumerated() { try await other.set("\(index)", row.value) }
            let store = desk.keyValueStore()
            // The first read waits for at most half a second.
            try await store.waitForAnswer()
            for (index, row) in Self.table.enumerated() {
                let key = "\(index)"
                #expect(store.bool(forKey: key) == row.bool, "\(row)")
                #expect(store.longLong(forKey: key) == row.longLong, "\(row)")
                #expect(store.double(forKey: key) == row.double, "\(row)")
                let object = try Value(object: try #require(store.object(forKey: key)))
                let expected = try Value(object: row.object)
                #expect(object == expected && object == row.value, "\(row)")
                let isString = if case .string = row.value { true } else { false }
                let isData = if case .data = row.value { true } else { false }
                let isArray = if case .array = row.value { true } else { false }
                let isDictionary = if case .dictionary = row.value { true } else { false }
                #expect((store.string(forKey: key) != nil) == isString, "\(row)")
                #expect((store.data(forKey: key) != nil) == isData, "\(row)")
                #expect((store.array(forKey: key) != nil) == isArray, "\(row)")
                #expect((store.dictionary(forKey: key) != nil) == isDictionary, "\(row)")
            }
            #expect(store.dictionaryRepresentation.count == Self.table.count)
        }
    }

    @Test func `an absent key has the getters' empty values`() async throws {
        try await Desk.with { desk in
            let store = desk.keyValueStore()
            #expect(store.object(forKey: "x") == nil && store.string(forKey: "x") == nil)
            #expect(store.data(forKey: "x") == nil && store.array(forKey: "x") == nil)
            #expect(store.dictionary(forKey: "x") == nil && store.dictionaryRepresentation.isEmpty)
            #expect(!store.bool(forKey: "x") && store.longLong(forKey: "x") == 0 && store.double(forKey: "x") == 0)
        }
    }

    @Test func `objects can be cast as on Apple's systems`() {
        #expect(Value.integer(1).object as? Int == 1 && Value.integer(1).object as? Double == 1)
        #expect(Value.integer(1).object as? Bool == true && Value.integer(5).object as? Bool == nil)
        #expect(Value.boolean(true).object as? Bool == true && Value.boolean(true).object as? Int == 1)
        #expect(Value.real(1.5).object as? Double == 1.5 && Value.real(1.5).object as? Int == nil)
        #expect(Value.array([1, 2]).object as? [Int] == [1, 2])
        #expect(Value.dictionary(["a": "b"]).object as? [String: String] == ["a": "b"])
    }

    @Test func `what is set as an object of Foundation keeps its type`() throws {
        let objects: [(Any, Value)] = [
            (true, true), (NSNumber(value: true), true), (1, 1), (UInt8(1), 1), (Int8(-1), -1), (Int8(100), 100),
            (NSNumber(value: Int8(-3)), -3), (["k": Int8(-3)], .dictionary(["k": -3])), (NSNumber(value: 1), 1),
            (UInt64(1), 1), (1.0, .real(1)), (Float(0.5), .real(0.5)), (CGFloat(1.5), .real(1.5)),
            (CGFloat(2), .real(2)), (Decimal(string: "1.25") as Any, .real(1.25)), (Decimal(7), .real(7)),
            (NSDecimalNumber(string: "0.1"), .real(0.1)), ([CGFloat(0.5)], .array([.real(0.5)])),
            (Int?.some(3) as Any, 3), (CGFloat?.some(3) as Any, .real(3)), ("s", "s"), (NSString("s"), "s"),
            (Data([1]), .data([1])), (NSData(data: Data([1])), .data([1])),
            (Date(timeIntervalSinceReferenceDate: 2), .date(2)), ([1, "a"] as [Any], .array([1, "a"])),
            (NSArray(array: [true]), .array([true])), (["a": [1.5]], .dictionary(["a": .array([.real(1.5)])])),
            (NSDictionary(dictionary: ["a": 1]), .dictionary(["a": 1])),
        ]
        for (object, value) in objects { #expect(try Value(object: object) == value, "\(type(of: object))") }
        for object in [
            NSNull(), URL(filePath: "/"), UInt64.max, [NSNull()], ["a": NSObject()], [1: 2],
            Int?.none as Any, Int??.some(nil) as Any, [Int?.none], URL(string: "a:b") as Any,
        ] as [Any] {
            #expect(throws: UbiquitousStoreError.self, "\(object)") { try Value(object: object) }
        }
    }

    // MARK: Setters

    @Test func `every setter's value can be read at once, and is what another process reads`() async throws {
        try await Desk.with { desk in
            let store = desk.keyValueStore()
            store.set(true, forKey: "bool")
            store.set(Int64(5), forKey: "longLong")
            store.set(1.5, forKey: "double")
            store.set("text", forKey: "string")
            store.set(Data([1, 2]), forKey: "data")
            store.set([1, "two"] as [Any], forKey: "array")
            store.set(["a": Date(timeIntervalSinceReferenceDate: 3)], forKey: "dictionary")
            store.set(7, forKey: "literal")
            store.set(NSNumber(value: false), forKey: "object")
            #expect(store.bool(forKey: "bool") && store.longLong(forKey: "longLong") == 5)
            #expect(store.array(forKey: "array")?.count == 2 && store.longLong(forKey: "literal") == 7)
            try await store.waitForAnswer()
            let values = try await desk.otherProcess().snapshot().values
            #expect(
                values == [
                    "bool": true, "longLong": 5, "double": .real(1.5), "string": "text", "data": .data([1, 2]),
                    "array": .array([1, "two"]), "dictionary": .dictionary(["a": .date(3)]), "literal": 7,
                    "object": false,
                ])
        }
    }

    @Test func `nil removes, through every setter, and so does removeObject`() async throws {
        try await Desk.with { desk in
            let store = desk.keyValueStore()
            let setters: [(String) -> Void] = [
                { store.set(nil as Any?, forKey: $0) }, { store.set(nil as String?, forKey: $0) },
                { store.set(nil as Data?, forKey: $0) }, { store.set(nil as [Any]?, forKey: $0) },
                { store.set(nil as [String: Any]?, forKey: $0) }, { store.removeObject(forKey: $0) },
            ]
            for index in setters.indices { store.set(Int64(1), forKey: "\(index)") }
            for (index, remove) in setters.enumerated() { remove("\(index)") }
            store.removeObject(forKey: "absent")
            #expect(store.dictionaryRepresentation.isEmpty)
            try await store.waitForAnswer()
            let values = try await desk.otherProcess().snapshot().values
            #expect(values.isEmpty)
        }
    }

    @Test func `what no store can hold is ignored, announced with its error, and ends nothing`() async throws {
        try await Desk.with { desk in
            let store = desk.keyValueStore()
            let told = Told(store)
            let long = String(repeating: "k", count: 129)
            store.set(Int64(1), forKey: "kept")
            store.set(Int64(1), forKey: long)
            store.set(Int64(1), forKey: "")
            store.set(Int64(1), forKey: "a\0b")
            store.set("a\0b", forKey: "kept")
            store.set(URL(filePath: "/") as Any, forKey: "kept")
            store.set(Date(timeIntervalSinceReferenceDate: .nan) as Any, forKey: "kept")
            store.set(Data(count: 1_048_577), forKey: "kept")
            store.set((0..<20).reduce([] as [Any]) { array, _ in [array] }, forKey: "kept")
            try await eventually("all are announced: \(told.all)") { told.all.count == 8 }
            // Only one of them is too large; Apple has no reason for the others.
            #expect(told.all.map(\.reason) == [nil, nil, nil, nil, nil, nil, 2, nil])
            #expect(
                told.all.map(\.error) == [
                    .keyTooLong, .invalidKey, .invalidKey, .invalidValue, .invalidValue, .invalidValue, .quotaExceeded,
                    .depthExceeded,
                ])
            #expect(told.all.first?.keys == [long] && store.longLong(forKey: "kept") == 1)
            #expect(store.dictionaryRepresentation.count == 1)
            try await store.waitForAnswer()
        }
    }

    @Test func `a write over the quota is taken back and announced with reason 2`() async throws {
        try await Desk.with { desk in
            let store = desk.keyValueStore()
            store.set(Data(count: 1_000_000), forKey: "large")
            store.set("before", forKey: "key")
            try await store.waitForAnswer()
            let told = Told(store)
            store.set(Data(count: 100_000), forKey: "key")
            store.set(Int64(1), forKey: "good")
            #expect(store.data(forKey: "key")?.count == 100_000 || store.string(forKey: "key") == "before")
            try await eventually("it is announced") { !told.all.isEmpty }
            #expect(store.string(forKey: "key") == "before")
            try await store.waitForAnswer()
            #expect(told.all == [.init(reason: 2, keys: ["key"], error: .quotaExceeded)])
            let other = try await desk.otherProcess()
            let values = try await other.values(["key", "good"])
            #expect(values == ["key": "before", "good": 1])
        }
    }

    // MARK: Notifications

    @Test func `changes of others are announced, own ones are not`() async throws {
        try await Desk.with { desk in
            let store = desk.keyValueStore()
            store.set(Int64(1), forKey: "own")
            try await store.waitForAnswer()
            let told = Told(store)
            store.set(Int64(2), forKey: "own")
            let other = try await desk.otherProcess()
            try await other.apply(["a": "there", "b": 2])
            try await eventually("it is announced") { !told.all.isEmpty }
            #expect(store.string(forKey: "a") == "there" && store.longLong(forKey: "b") == 2)
            try await other.remove("a")
            try await eventually("the removal is announced") { told.all.count == 2 }
            #expect(store.object(forKey: "a") == nil)
            try await store.waitForAnswer()
            #expect(told.all == [.init(reason: 0, keys: ["a", "b"]), .init(reason: 0, keys: ["a"])])
            #expect(!told.wereOnMainThread)
        }
    }

    @Test func `two faces of a store in one process see each other's writes at once`() async throws {
        try await Desk.with { desk in
            let (one, two) = (desk.keyValueStore(), desk.keyValueStore())
            one.set(Int64(1), forKey: "a")
            #expect(two.longLong(forKey: "a") == 1)
        }
    }

    @Test func `the default store is the one that was named before its first use`() async throws {
        try await Desk.with { desk in
            let named = DefaultStore()
            #expect(named.use(identifier: notes, bus: desk.bus.address))
            let store = named.object
            #expect(!named.use(identifier: "org.example.Other", bus: nil) && named.object === store)
            store.set(Int64(1), forKey: "a")
            try await store.waitForAnswer()
            let value = try await desk.otherProcess().value("a")
            #expect(value == 1)
        }
    }
}

/// Collects a store's notifications.
final class Told: Sendable {
    struct Notice: Equatable {
        var reason: Int?
        var keys: [String]
        var error: UbiquitousStoreError.Code?
    }

    private let notices = Mutex<[Notice]>([])
    private let onMainThread = Mutex(false)

    var all: [Notice] { notices.withLock { $0 } }
    var wereOnMainThread: Bool { onMainThread.withLock { $0 } }

    init(_ store: NSUbiquitousKeyValueStore) {
        // The observer needn't be removed: its store is released with the test.
        _ = NotificationCenter.default.addObserver(
            forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store, queue: nil
        ) { notification in
            let info = notification.userInfo
            let notice = Notice(
                reason: info?[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int,
                keys: info?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String] ?? [],
                error: (info?[NSUbiquitousKeyValueStoreErrorKey] as? UbiquitousStoreError)?.code)
            self.notices.withLock { $0.append(notice) }
            if Thread.isMainThread { self.onMainThread.withLock { $0 = true } }
        }
    }
}

extension Desk {
    /// Returns the usual store as an app uses it.
    func keyValueStore(_ identifier: String = notes) -> NSUbiquitousKeyValueStore {
        NSUbiquitousKeyValueStore(StorePlace(identifier: identifier, bus: bus.address))
    }
}
