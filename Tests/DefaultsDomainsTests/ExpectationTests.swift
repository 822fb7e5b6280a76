// SPDX-License-Identifier: Apache-2.0

import DefaultsDomains
import Foundation
import PropertyList
import Synchronization
import Testing
import UbiquitousStoreTesting

import class DefaultsDomains.UserDefaults

/// What other projects' tests of this class expect: docs/defaults-expectations.md, row by row.
@Suite(.serialized, .timeLimit(.minutes(30)))
struct ExpectationTests {
    /// A row of the page.
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let holds: @Sendable (UserDefaults) throws -> Bool

        init(_ name: String, _ holds: @escaping @Sendable (UserDefaults) throws -> Bool) {
            (testDescription, self.holds) = (name, holds)
        }
    }

    private static let bytes = Data([0, 1, 2, 3, 4])
    private static let file = URL(fileURLWithPath: "/hello/world")

    /// Makes two rows: a getter returns a value when it is registered, and when it is set.
    private static func both(
        _ name: String, _ value: @escaping @Sendable () -> Any,
        _ holds: @escaping @Sendable (UserDefaults) -> Bool
    ) -> [Row] {
        [
            Row(name + "r") { defaults in
                defaults.register(defaults: ["key1": value()])
                defaults.removeObject(forKey: "key1")
                return holds(defaults)
            },
            Row(name + "s") { defaults in
                defaults.set(value(), forKey: "key1")
                return holds(defaults)
            },
        ]
    }

    private static let corelibs: [Row] =
        [
            Row("F1") {
                $0.set(4, forKey: "ourKey")
                return $0.integer(forKey: "ourKey") == 4
            }
        ]
        + both("F2", { NSNumber(value: 5) }) { $0.integer(forKey: "key1") == 5 }
        + both("F3", { "hello" as NSString }) { $0.string(forKey: "key1") == "hello" }
        + both("F4", { "hello" }) { $0.string(forKey: "key1") == "hello" }
        + both("F5", { file as NSURL }) { $0.url(forKey: "key1") == file }
        + both("F6", { file }) { $0.url(forKey: "key1") == file }
        + both("F7", { bytes as NSData }) { $0.data(forKey: "key1") == bytes }
        + both("F8", { bytes }) { $0.data(forKey: "key1") == bytes }
        + both("F9", { "YES" }) { $0.bool(forKey: "key1") }
        + both("F10", { "1234" }) { $0.integer(forKey: "key1") == 1234 && $0.float(forKey: "key1") == 1234 }
        + both("F11", { "12.34" }) { $0.double(forKey: "key1") == 12.34 }
        + both("F12", { true }) {
            $0.integer(forKey: "key1") == 1 && $0.float(forKey: "key1") == 1 && $0.double(forKey: "key1") == 1
                && $0.string(forKey: "key1") == "1"
        }
        + both("F13", { 12.34 as Float }) {
            $0.integer(forKey: "key1") == 12 && $0.double(forKey: "key1") == Double(12.34 as Float)
                && $0.string(forKey: "key1") == "12.34"
        }
        + both("F14", { 12.34 }) {
            $0.integer(forKey: "key1") == 12 && $0.float(forKey: "key1") == 12.34
                && $0.string(forKey: "key1") == "12.34"
        }
        + both("F15", { 42 }) {
            $0.float(forKey: "key1") == 42 && $0.double(forKey: "key1") == 42 && $0.string(forKey: "key1") == "42"
        } + [
            Row("F16") { defaults in
                let date = Date()
                let values: [String: Any] = [
                    "date": date, "string": "s", "array": [1, 2, 3], "dictionary": ["a": "b", "today": date],
                    "data": bytes, "bool": true,
                ]
                guard !defaults.volatileDomainNames.contains("TestDomain") else { return false }
                defaults.setVolatileDomain(values, forName: "TestDomain")
                let read = defaults.volatileDomain(forName: "TestDomain")
                return read.count == values.count && read["date"] as? Date == date
                    && read["array"] as? [Int] == [1, 2, 3]
                    && (read["dictionary"] as? [String: Any])?["today"] as? Date == date
                    && read["data"] as? Data == bytes && read["bool"] as? Bool == true
                    && read["string"] as? String == "s"
            },
            Row("F17") { defaults in
                let values: [String: Any] = [
                    "int": 1234, "double": 5678.1234, "string": "s", "array": [1, "Surprise"], "dictionary": ["a": 1],
                ]
                defaults.removePersistentDomain(forName: "domain")
                guard defaults.persistentDomain(forName: "domain") == nil else { return false }
                defaults.setPersistentDomain(values, forName: "domain")
                let read = try #require(defaults.persistentDomain(forName: "domain"))
                defaults.removePersistentDomain(forName: "domain")
                return read.count == 5 && read["int"] as? Int == 1234 && read["double"] as? Double == 5678.1234
                    && (read["array"] as? [Any])?.last as? String == "Surprise"
                    && (read["dictionary"] as? [String: Any])?["a"] as? Int == 1
                    && defaults.persistentDomain(forName: "domain") == nil
            },
            Row("F18") { defaults in
                notifications { defaults.removePersistentDomain(forName: "domain") } == 0
                    && notifications { defaults.setPersistentDomain(["a": 1], forName: "domain") } == 1
                    && notifications { defaults.removePersistentDomain(forName: "domain") } == 1
            },
        ]

    private static let gnustep: [Row] = [
        Row("G1") { $0 as Any is NSObject && $0 == $0 && $0.hash == $0.hash && !$0.description.isEmpty },
        Row("G2") { defaults in
            notifications { defaults.set(true, forKey: "bool") } == 1 && defaults.bool(forKey: "bool")
        },
        Row("G3") { defaults in
            notifications { defaults.set(34, forKey: "int") } == 1 && defaults.integer(forKey: "int") == 34
        },
        Row("G4") { defaults in
            defaults.set("SetString", forKey: "string")
            return defaults.string(forKey: "string") == "SetString"
        },
        Row("G5") { defaults in notifications { defaults.synchronize() } == 0 },
        Row("G6") { defaults in
            notifications { defaults.register(defaults: ["NotifyKey": "value"]) } == 0
                && defaults.string(forKey: "NotifyKey") == "value"
        },
        Row("G7") { defaults in
            notifications { defaults.setVolatileDomain(["a": 1], forName: "NotifyVolatile") } == 1
                && notifications { defaults.removeVolatileDomain(forName: "NotifyVolatile") } == 1
        },
        Row("G8") { defaults in
            notifications { defaults.addSuite(named: "NotifySuite") } == 0
                && notifications { defaults.removeSuite(named: "NotifySuite") } == 0
        },
        Row("G9") { defaults in
            defaults.set(1, forKey: "equal")
            return notifications { defaults.set(1, forKey: "equal") } == 0
        },
        Row("G10") { defaults in
            // The arguments win over the own domain, that over the global one, and that over registered values.
            defaults.register(defaults: ["order": 1])
            defaults.setPersistentDomain(["order": 2], forName: UserDefaults.globalDomain)
            guard defaults.integer(forKey: "order") == 2 else { return false }
            defaults.set(3, forKey: "order")
            guard defaults.integer(forKey: "order") == 3 else { return false }
            defaults.setVolatileDomain(["order": 4], forName: UserDefaults.argumentDomain)
            return defaults.integer(forKey: "order") == 4
        },
    ]

    /// Counts how often the notification is posted on this thread during `body`.
    private static func notifications(_ body: () -> Void) -> Int {
        let counter = Counter(ofThread: pthread_self())
        let token = NotificationCenter.default.addObserver(
            forName: UserDefaults.didChangeNotification, object: nil, queue: nil
        ) { _ in counter.count() }
        body()
        NotificationCenter.default.removeObserver(token)
        return counter.value
    }

    /// Counts calls on one thread, because other tests change settings on other threads.
    private final class Counter: Sendable {
        private let thread: pthread_t
        private let number = Mutex(0)
        init(ofThread thread: pthread_t) { self.thread = thread }
        func count() { if pthread_equal(thread, pthread_self()) != 0 { number.withLock { $0 += 1 } } }
        var value: Int { number.withLock { $0 } }
    }

    @Test func `every row of the page holds`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            for (index, row) in (Self.corelibs + Self.gnustep).enumerated() {
                let defaults = desk.settings("org.example.row\(index)")
                #expect(try row.holds(defaults), "\(row.testDescription)")
                defaults.removeVolatileDomain(forName: UserDefaults.registrationDomain)
                defaults.removeVolatileDomain(forName: UserDefaults.argumentDomain)
                defaults.removePersistentDomain(forName: UserDefaults.globalDomain)
            }
        }
    }

    @Test func `the page names each row that is tested, and no other`() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/defaults-expectations.md"), encoding: .utf8)
        let named = page.split(separator: "\n").compactMap { line -> String? in
            let cell = line.split(separator: "|").first.map { $0.trimmingCharacters(in: .whitespaces) } ?? ""
            return cell.wholeMatch(of: /[FG][0-9]+/) == nil ? nil : cell
        }
        // The letter at the end says whether the value was registered or set.
        let tested = Set((Self.corelibs + Self.gnustep).map { $0.testDescription.filter { !$0.isLowercase } })
        #expect(Set(named) == tested && named.count == Set(named).count)
    }
}
