// SPDX-License-Identifier: Apache-2.0

import DefaultsDomains
import Foundation
import Testing
import UbiquitousStoreTesting

/// The object of Foundation's class, compared with Foundation's own: each member that can be overridden.
@Suite(.serialized, .timeLimit(.minutes(30)))
struct FoundationTests {
    typealias Theirs = Foundation.UserDefaults

    /// A member, what a program sees that uses it, and, if that differs from Foundation's, why.
    struct Member: Sendable {
        let name: String
        let expected: String
        let differs: String?
        let seen: @Sendable (Theirs) -> String

        init(
            _ name: String, _ expected: String, differs: String? = nil, _ seen: @escaping @Sendable (Theirs) -> String
        ) {
            (self.name, self.expected, self.differs, self.seen) = (name, expected, differs, seen)
        }
    }

    private static let setters = [
        Member("set(_:forKey:)", "text") {
            $0.set("text" as Any?, forKey: "any")
            return $0.string(forKey: "any") ?? "nil"
        },
        Member("set(_:forKey:)", "12") {
            $0.set(12, forKey: "integer")
            return $0.string(forKey: "integer") ?? "nil"
        },
        Member("set(_:forKey:)", "0.5") {
            $0.set(0.5 as Float, forKey: "float")
            return "\($0.double(forKey: "float"))"
        },
        Member("set(_:forKey:)", "2.25") {
            $0.set(2.25, forKey: "double")
            return "\($0.double(forKey: "double"))"
        },
        Member("set(_:forKey:)", "true 1") {
            $0.set(true, forKey: "bool")
            return "\($0.bool(forKey: "bool")) \($0.integer(forKey: "bool"))"
        },
        Member("set(_:forKey:)", "https://example.org/a", differs: "Foundation's stores the path of a web address.") {
            $0.set(URL(string: "https://example.org/a"), forKey: "url")
            return $0.url(forKey: "url")?.absoluteString ?? "nil"
        },
    ]

    private static let getters = [
        Member("object(forKey:)", "12 nil") {
            $0.set(12, forKey: "key")
            return "\($0.object(forKey: "key") as? Int ?? 0) \($0.object(forKey: "none") == nil ? "nil" : "some")"
        },
        Member("string(forKey:)", "12.34 nil") {
            $0.set(12.34, forKey: "key")
            return "\($0.string(forKey: "key") ?? "nil") \($0.string(forKey: "none") ?? "nil")"
        },
        Member("array(forKey:)", "[1, 2]", differs: "Foundation's wraps each element in an optional.") {
            $0.set([1, 2], forKey: "key")
            return "\($0.array(forKey: "key") ?? [])"
        },
        Member("dictionary(forKey:)", "[\"a\": 1]", differs: "Foundation's wraps each value in an optional.") {
            $0.set(["a": 1], forKey: "key")
            return "\($0.dictionary(forKey: "key") ?? [:])"
        },
        Member("data(forKey:)", "3 nil") {
            $0.set(Data([1, 2, 3]), forKey: "key")
            return "\($0.data(forKey: "key")?.count ?? 0) \($0.data(forKey: "none") == nil ? "nil" : "some")"
        },
        Member("stringArray(forKey:)", "[\"a\", \"b\"]") {
            $0.set(["a", "b"], forKey: "key")
            return "\($0.stringArray(forKey: "key") ?? [])"
        },
        Member("integer(forKey:)", "42 0") {
            $0.set("42", forKey: "key")
            return "\($0.integer(forKey: "key")) \($0.integer(forKey: "none"))"
        },
        Member("float(forKey:)", "1.5 0.0") {
            $0.set("1.5", forKey: "key")
            return "\($0.float(forKey: "key")) \($0.float(forKey: "none"))"
        },
        Member("double(forKey:)", "1.0 0.0") {
            $0.set(true, forKey: "key")
            return "\($0.double(forKey: "key")) \($0.double(forKey: "none"))"
        },
        Member("bool(forKey:)", "true false") {
            $0.set("YES", forKey: "key")
            return "\($0.bool(forKey: "key")) \($0.bool(forKey: "none"))"
        },
        Member("url(forKey:)", "file:///etc/hosts nil") {
            $0.set(URL(fileURLWithPath: "/etc/hosts"), forKey: "key")
            return "\($0.url(forKey: "key")?.absoluteString ?? "") \($0.url(forKey: "none")?.path ?? "nil")"
        },
        Member("dictionaryRepresentation()", "set registered") {
            $0.register(defaults: ["represented registered": "registered"])
            $0.set("set", forKey: "represented")
            let all = $0.dictionaryRepresentation()
            return "\(all["represented"] as? String ?? "") \(all["represented registered"] as? String ?? "")"
        },
    ]

    private static let others = [
        Member("removeObject(forKey:)", "nil") {
            $0.set(1, forKey: "key")
            $0.removeObject(forKey: "key")
            return $0.string(forKey: "key") ?? "nil"
        },
        Member("register(defaults:)", "1 2 1") {
            $0.register(defaults: ["key of ours": 1])
            let first = $0.integer(forKey: "key of ours")
            $0.set(2, forKey: "key of ours")
            let second = $0.integer(forKey: "key of ours")
            $0.removeObject(forKey: "key of ours")
            return "\(first) \(second) \($0.integer(forKey: "key of ours"))"
        },
        Member("addSuite(named:)", "nil") {
            $0.addSuite(named: "org.example.empty")
            return $0.string(forKey: "of the suite") ?? "nil"
        },
        Member("removeSuite(named:)", "nil") {
            $0.removeSuite(named: "org.example.empty")
            return $0.string(forKey: "of the suite") ?? "nil"
        },
        Member("volatileDomainNames.getter", "true true", differs: "Foundation's leaves out the registration domain.") {
            let names = $0.volatileDomainNames
            return "\(names.contains(Theirs.argumentDomain)) \(names.contains(Theirs.registrationDomain))"
        },
        Member("volatileDomain(forName:)", "0") { "\($0.volatileDomain(forName: "of no name").count)" },
        Member("setVolatileDomain(_:forName:)", "nil 2", differs: "Foundation's merges.") {
            $0.setVolatileDomain(["a": 1], forName: "volatile")
            $0.setVolatileDomain(["b": 2], forName: "volatile")
            let domain = $0.volatileDomain(forName: "volatile")
            return "\(domain["a"].map { "\($0)" } ?? "nil") \(domain["b"] as? Int ?? 0)"
        },
        Member("removeVolatileDomain(forName:)", "0") {
            $0.setVolatileDomain(["a": 1], forName: "volatile")
            $0.removeVolatileDomain(forName: "volatile")
            return "\($0.volatileDomain(forName: "volatile").count)"
        },
        Member("synchronize()", "true") { "\($0.synchronize())" },
        Member("objectIsForced(forKey:)", "false") { "\($0.objectIsForced(forKey: "key"))" },
        Member("objectIsForced(forKey:inDomain:)", "false") {
            "\($0.objectIsForced(forKey: "key", inDomain: "org.example.empty"))"
        },
        Member("static resetStandardUserDefaults()", "kept") {
            $0.set("kept", forKey: "key")
            type(of: $0).resetStandardUserDefaults()
            return $0.string(forKey: "key") ?? "nil"
        },
        Member("__allocating_init(suiteName:)", "true") { _ in "\(Theirs(suiteName: "org.example.empty") != nil)" },
        Member("static standard.getter", "true", differs: "Foundation's own stays Foundation's.") {
            type(of: $0).standard !== Theirs.standard ? "true" : "false"
        },
    ]

    private static func persistent(_ domain: String) -> [Member] {
        [
            Member("setPersistentDomain(_:forName:)", "1") {
                $0.setPersistentDomain(["a": 1], forName: domain)
                return "\($0.persistentDomain(forName: domain)?["a"] as? Int ?? 0)"
            },
            Member("persistentDomain(forName:)", "1") {
                $0.setPersistentDomain(["a": 1, "b": 2], forName: domain)
                $0.setPersistentDomain(["c": 1], forName: domain)
                return "\($0.persistentDomain(forName: domain)?.count ?? 0)"
            },
            Member("removePersistentDomain(forName:)", "0") {
                $0.setPersistentDomain(["a": 1], forName: domain)
                $0.removePersistentDomain(forName: domain)
                return "\($0.persistentDomain(forName: domain)?.count ?? 0)"
            },
        ]
    }

    @Test func `the object has what Foundation's has, and differs where its row says why`() async throws {
        let (own, other) = ("org.example.own.\(UUID())", "org.example.other.\(UUID())")
        defer { Self.removeFiles(of: [own, other]) }
        let theirs = try #require(Theirs(suiteName: own))
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let ours = desk.settings(own).foundation
            for member in Self.setters + Self.getters + Self.others + Self.persistent(other) {
                #expect(member.seen(ours) == member.expected, "\(member.name)")
                if member.differs == nil { #expect(member.seen(theirs) == member.expected, "\(member.name)") }
            }
        }
    }

    @Test func `the rows are the members of Foundation's class that can be overridden`() throws {
        let maps = try String(contentsOfFile: "/proc/self/maps", encoding: .utf8).split(separator: "\n")
        // If Foundation is linked statically, there is no list to compare with.
        guard let line = maps.first(where: { $0.hasSuffix("/libFoundation.so") }),
            let slash = line.firstIndex(of: "/")
        else { return }
        let bytes = try Data(contentsOf: URL(filePath: String(line[slash...])), options: .alwaysMapped)
        let prefix = Data("$s10Foundation12UserDefaultsC".utf8)
        var symbols: Set<String> = []
        var start = bytes.startIndex
        while let found = bytes.range(of: prefix, in: start..<bytes.endIndex) {
            let symbol = bytes[found.lowerBound...].prefix { $0 != 0 }
            if symbol.suffix(2) == Data("Tq".utf8) { symbols.insert(String(decoding: symbol, as: UTF8.self)) }
            start = found.upperBound
        }
        let members = Self.setters + Self.getters + Self.others + Self.persistent("")
        #expect(symbols.count == members.count, "\(symbols.sorted())")
        for member in members {
            // A symbol contains the name, without words that occurred before in it, or an initialiser's label.
            let name = member.name.replacing("static ", with: "").replacing("UserDefaults", with: "")
                .replacing("__allocating_init(", with: "").prefix { !"(.:".contains($0) }
            #expect(symbols.contains { $0.contains(name) }, "\(member.name)")
        }
    }

    private static func removeFiles(of domains: [String]) {
        let environment = ProcessInfo.processInfo.environment
        let folder = environment["XDG_CONFIG_HOME"] ?? NSHomeDirectory() + "/.config"
        for domain in domains { unlink("\(folder)/\(domain).plist") }
    }
}
