// SPDX-License-Identifier: Apache-2.0

import DefaultsDomains
import Foundation
import Testing
import UbiquitousStoreTesting

import struct DefaultsDomains.AppStorage
import class DefaultsDomains.UserDefaults

/// Apple's page of the class, member by member: docs/defaults-members.md. If one is missing, this doesn't compile.
@Suite(.serialized, .timeLimit(.minutes(30)))
struct MemberTests {
    private struct Member: Sendable {
        let name: String
        let works: @Sendable (UserDefaults) throws -> Bool

        init(_ name: String, _ works: @escaping @Sendable (UserDefaults) throws -> Bool) {
            (self.name, self.works) = (name, works)
        }
    }

    private static let making: [Member] = [
        Member("standard") { _ in
            let property: () -> UserDefaults = { UserDefaults.standard }
            return property() === UserDefaults.standard
        },
        Member("init()") { _ in UserDefaults() !== UserDefaults.standard },
        Member("init(suiteName:)") { _ in
            UserDefaults(suiteName: "org.example.group") != nil && UserDefaults(suiteName: nil) != nil
        },
        Member("init(user:)") { _ in
            UserDefaults(user: NSUserName()) != nil && UserDefaults(user: "no such person") == nil
        },
        Member("register(defaults:)") {
            $0.register(defaults: ["registered": 1])
            return $0.integer(forKey: "registered") == 1
        },
    ]

    private static let getters: [Member] = [
        Member("bool(forKey:)") { $0.bool(forKey: "true") && !$0.bool(forKey: "none") },
        Member("integer(forKey:)") { $0.integer(forKey: "seven") == 7 && $0.integer(forKey: "none") == 0 },
        Member("float(forKey:)") { $0.float(forKey: "seven") == 7 && $0.float(forKey: "none") == 0 },
        Member("double(forKey:)") { $0.double(forKey: "seven") == 7 && $0.double(forKey: "none") == 0 },
        Member("url(forKey:)") { $0.url(forKey: "web")?.host == "example.org" && $0.url(forKey: "none") == nil },
        Member("string(forKey:)") { $0.string(forKey: "seven") == "7" && $0.string(forKey: "none") == nil },
        Member("stringArray(forKey:)") {
            $0.stringArray(forKey: "list") == ["a"] && $0.stringArray(forKey: "none") == nil
        },
        Member("data(forKey:)") { $0.data(forKey: "data") == Data([1]) && $0.data(forKey: "none") == nil },
        Member("object(forKey:)") { $0.object(forKey: "date") as? Date == date && $0.object(forKey: "none") == nil },
        Member("array(forKey:)") {
            $0.array(forKey: "list")?.first as? String == "a" && $0.array(forKey: "none") == nil
        },
        Member("dictionary(forKey:)") {
            $0.dictionary(forKey: "map")?["a"] as? Int == 1 && $0.dictionary(forKey: "none") == nil
        },
        Member("dictionaryRepresentation()") {
            let all = $0.dictionaryRepresentation()
            return all["seven"] as? Int == 7 && all["AppleLanguages"] is [Any]
        },
    ]

    private static let date = Date(timeIntervalSinceReferenceDate: 1)

    /// The setters. They set the values that the getters get.
    private static let setters: [Member] = [
        Member("set(Bool)") {
            $0.set(true, forKey: "true")
            return $0.object(forKey: "true") as? Bool == true
        },
        Member("set(Int)") {
            $0.set(7, forKey: "seven")
            return $0.object(forKey: "seven") as? Int == 7
        },
        Member("set(Float)") {
            $0.set(1.5 as Float, forKey: "float")
            return $0.object(forKey: "float") as? Double == 1.5
        },
        Member("set(Double)") {
            $0.set(2.5, forKey: "double")
            return $0.object(forKey: "double") as? Double == 2.5
        },
        Member("set(URL?)") {
            $0.set(URL(string: "https://example.org/a"), forKey: "web")
            $0.set(URL(filePath: NSHomeDirectory() + "/a"), forKey: "file")
            return $0.string(forKey: "file") == "~/a" && $0.url(forKey: "file")?.path == NSHomeDirectory() + "/a"
        },
        Member("set(Any?)") {
            for (key, value) in ["list": ["a"], "map": ["a": 1], "data": Data([1]), "date": date] as [String: Any] {
                $0.set(value, forKey: key)
            }
            $0.set("x", forKey: "gone")
            $0.set(nil as Any?, forKey: "gone")
            return $0.array(forKey: "list") != nil && $0.object(forKey: "gone") == nil
        },
        Member("removeObject(forKey:)") {
            $0.set(1, forKey: "gone")
            $0.removeObject(forKey: "gone")
            return $0.object(forKey: "gone") == nil
        },
    ]

    private static let domains: [Member] = [
        Member("addSuite(named:)") {
            $0.setPersistentDomain(["in suite": 1], forName: "org.example.suite")
            $0.addSuite(named: "org.example.suite")
            return $0.integer(forKey: "in suite") == 1
        },
        Member("removeSuite(named:)") {
            $0.removeSuite(named: "org.example.suite")
            return $0.object(forKey: "in suite") == nil
        },
        Member("argumentDomain") { _ in UserDefaults.argumentDomain == "NSArgumentDomain" },
        Member("globalDomain") { _ in UserDefaults.globalDomain == "NSGlobalDomain" },
        Member("registrationDomain") { _ in UserDefaults.registrationDomain == "NSRegistrationDomain" },
        Member("volatileDomainNames") { $0.volatileDomainNames.contains(UserDefaults.argumentDomain) },
        Member("setPersistentDomain(_:forName:)") {
            $0.setPersistentDomain(["a": 1], forName: "org.example.other")
            $0.setPersistentDomain(["b": 1], forName: "org.example.other")
            return $0.persistentDomain(forName: "org.example.other")?.keys.sorted() == ["b"]
        },
        Member("persistentDomain(forName:)") { $0.persistentDomain(forName: "org.example.none") == nil },
        Member("removePersistentDomain(forName:)") {
            $0.removePersistentDomain(forName: "org.example.other")
            return $0.persistentDomain(forName: "org.example.other") == nil
        },
        Member("persistentDomainNames()") { $0.persistentDomainNames() as? [String] != nil },
        Member("setVolatileDomain(_:forName:)") {
            $0.setVolatileDomain(["a": 1], forName: "mine")
            $0.setVolatileDomain(["b": 1], forName: "mine")
            return $0.volatileDomain(forName: "mine").keys.sorted() == ["b"]
        },
        Member("volatileDomain(forName:)") { $0.volatileDomain(forName: "none").isEmpty },
        Member("removeVolatileDomain(forName:)") {
            $0.removeVolatileDomain(forName: "mine")
            return !$0.volatileDomainNames.contains("mine")
        },
        Member("objectIsForced(forKey:)") { !$0.objectIsForced(forKey: "seven") },
        Member("objectIsForced(forKey:inDomain:)") { !$0.objectIsForced(forKey: "seven", inDomain: editor) },
    ]

    private static let telling: [Member] = [
        Member("didChangeNotification") { _ in
            UserDefaults.didChangeNotification.rawValue == "NSUserDefaultsDidChangeNotification"
        },
        Member("DidChangeMessage") { _ in
            UserDefaults.DidChangeMessage.name == UserDefaults.didChangeNotification
        },
        Member("sizeLimitExceededNotification") { _ in
            UserDefaults.sizeLimitExceededNotification.rawValue.hasSuffix("byteCountLimitReached")
        },
        Member("SizeLimitExceededMessage") { _ in
            UserDefaults.SizeLimitExceededMessage.name == UserDefaults.sizeLimitExceededNotification
        },
        Member("noCloudAccountNotification") { _ in
            UserDefaults.noCloudAccountNotification.rawValue.hasSuffix("NoCloudAccountNotification")
        },
        Member("didChangeCloudAccountsNotification") { _ in
            UserDefaults.didChangeCloudAccountsNotification.rawValue.hasSuffix("DidChangeAccountsNotification")
        },
        Member("completedInitialCloudSyncNotification") { _ in
            UserDefaults.completedInitialCloudSyncNotification.rawValue.hasSuffix("CompletedInitialSyncNotification")
        },
        Member("synchronize()") { defaults in
            defaults.set("x", forKey: "synchronized")
            // On a busy machine the service may need longer than a call waits.
            return (0..<20).contains { _ in defaults.synchronize() }
        },
        Member("resetStandardUserDefaults()") { _ in
            let standard = UserDefaults.standard
            UserDefaults.resetStandardUserDefaults()
            return standard === UserDefaults.standard
        },
    ]

    private static let all = making + setters + getters + domains + telling

    @Test func `every member of Apple's page is here, and does what the page says`() async throws {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            for member in Self.all { #expect(try member.works(defaults), "\(member.name)") }
        }
    }

    @Test func `the list has the members of Apple's page, and no other`() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/defaults-members.md"), encoding: .utf8)
        let named = page.split(separator: "\n").compactMap { $0.firstMatch(of: /^\| `([^`]+)` \|/)?.1 }
        #expect(named.map(String.init).sorted() == Self.all.map(\.name).sorted())
    }

    @Test func `an object is what Apple's is: an NSObject that is equal to itself, and may be a variadic argument`() {
        let object: Any = UserDefaults.standard
        #expect(object is NSObject && object is any NSObjectProtocol && object is any CustomStringConvertible)
        #expect(object is any CustomDebugStringConvertible && Set([UserDefaults.standard]).count == 1)
    }
}
