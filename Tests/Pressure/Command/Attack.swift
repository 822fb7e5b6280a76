// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PressureTesting
internal import SDBus
internal import StoreBus
internal import UbiquitousStoreTesting

/// The attacks that a user may try.
enum Attack: String, CaseIterable, ExpressibleByArgument {
    case deaf, manyDeaf = "many-deaf", snapshots, accountSubscriptions = "account-subscriptions", introspection
    case booleans, manyBooleans = "many-booleans", stopped, matches, connections, pending, array
    case emptyArrays = "empty-arrays", keys, comers, mounts, gushes, namespaces
    case unanswered, unansweredLarge = "unanswered-large", waiting, subordinates, crowd
    case burst, fan, domains, authorities, curves

    /// Whether it is on something that a program without data does not have: accounts, signals, domains.
    var needsService: Bool {
        switch self {
        case .accountSubscriptions, .stopped, .fan, .domains, .authorities, .curves: true
        default: false
        }
    }

    /// dbus-daemon refuses users that it can't look up.
    func isPossible(on bus: PrivateBus.Program) -> Bool { self != .subordinates || bus == .broker }

    /// The settings that it needs.
    var settings: String? { self == .manyBooleans ? "[Store]\nTotalBytes=4M\n" : nil }

    func words(on bus: PrivateBus.Program) -> String {
        let largest = "\(bus.largestArray >> 20) MiB"
        return switch self {
        case .deaf: "a client asks for 127 MB and reads nothing"
        case .manyDeaf: "50 clients ask for 127 MB each and read nothing"
        case .snapshots: "240 connections leave a snapshot of 1 MB unread each"
        case .accountSubscriptions: "230 subscriptions of an account that changes are unread"
        case .introspection: "two connections pipeline Introspect and read nothing"
        case .booleans: "a client reads a store of a million booleans, again and again"
        case .manyBooleans: "a client reads a store of four million booleans, where settings allow them"
        case .stopped: "a subscriber reads nothing, while its user writes"
        case .matches: "a client has 600 matches"
        case .connections: "as many connections as there may be, each with as many subscriptions as there may be"
        case .pending: "20 clients wait for a thousand calls each"
        case .array: "a client sets \(largest) of numbers, again and again"
        case .emptyArrays: "a client sets \(largest) of empty arrays, again and again"
        case .keys: "a client asks for \(largest) of empty keys, again and again"
        case .comers: "connections come, call and go"
        case .gushes: "connections come, send 6,000 calls at once, and go"
        case .mounts: "connections of a process with 3,000 mounts come, call and go"
        case .namespaces: "connections come, call and go, while namespaces with 4,096 mounts are made"
        case .unanswered: "a client sets a value without a pause, and expects no reply"
        case .unansweredLarge: "a client sets a megabyte without a pause, and expects no reply"
        case .waiting: "800 calls with 64 KiB each wait for a server that says nothing, and for one another"
        case .crowd: "50 connections set 30,000 empty arrays each, again and again"
        case .burst: "60 connections wait for a hundred calls each, none of which takes long"
        case .fan: "a domain of 16,000 keys changes, to which 480 subscriptions of a user listen"
        case .authorities: "a client signs in with 64 KiB of national flags for certificates, a hundred times at once"
        case .curves: "a client signs in with 16 certificates with curves of their own, a hundred times at once"
        case .domains: "a client fills 40 domains with Booleans, which take much memory, and opens them"
        case .subordinates: "200 ids that /etc/subuid grants one user leave a snapshot unread each"
        }
    }

    func begin(_ site: Site, _ path: String) async throws -> Attackers {
        let attackers = Attackers()
        func clients(_ count: Int) throws -> [RawClient] {
            try (0..<count).map { _ in try RawClient(site.bus, as: Site.attacker) }
        }
        switch self {
        case .deaf: attackers.clients = try clients(1)
        case .manyDeaf: attackers.clients = try clients(50)
        case .snapshots: attackers.clients = try clients(240)
        case .connections: attackers.clients = try clients(250)
        case .pending: attackers.clients = try clients(20)
        case .accountSubscriptions: attackers.clients = try clients(230)
        case .stopped: attackers.clients = try clients(2)
        case .matches: attackers.clients = try clients(1)
        case .subordinates:
            attackers.clients = try (0..<200).map { try RawClient(site.bus, as: Site.subordinates + $0) }
        case .introspection, .booleans, .manyBooleans, .array, .emptyArrays, .keys, .comers, .gushes, .mounts,
            .namespaces, .unanswered, .unansweredLarge, .waiting, .crowd, .burst, .fan, .domains, .authorities,
            .curves:
            let process = try Attacker.start(self, site, path)
            attackers.process = process
            try await eventually("the attack begins") { Attacker.isReady(process) }
        }
        for client in attackers.clients { prepare(client, path) }
        if self == .stopped { Self.write(attackers.clients[1], path) }
        if self == .accountSubscriptions { attackers.task = try await Self.changeAccount(site) }
        return attackers
    }

    private func prepare(_ client: RawClient, _ path: String) {
        switch self {
        case .deaf, .manyDeaf: client.askForMuch(path)
        case .snapshots, .subordinates: client.store(path, "GetSnapshot", 0, 0)
        case .connections: for _ in 0..<70 { client.store(path, "Subscribe", 1) }
        case .stopped: client.store(path, "Subscribe", 1)
        case .accountSubscriptions:
            var flags = Wire()
            flags.number(0 as UInt64)
            let account = BusNames.accountPath(uid: Site.attacker)
            client.call(
                BusNames.service, account, BusNames.accountInterface, "Subscribe", signature: "t", body: flags.bytes)
        case .pending:
            for _ in 0..<1000 { client.store(path, "Synchronize", 0, later: true) }
            _ = client.turn(waiting: 0)
        case .matches:
            for number in 0..<600 {
                client.addMatch("type='signal',sender='\(BusNames.service)',arg0='\(number)'")
                _ = client.turn(waiting: 0)
            }
        default: break
        }
    }

    private static func write(_ writer: RawClient, _ path: String) {
        let keys = (0..<100).map { "key \($0)" + String(repeating: "k", count: 100) }
        for number in 0..<2000 { writer.set(path, keys[number % 100], UInt32(number), later: true) }
        for _ in 0..<50 { _ = writer.turn(waiting: 10) }
    }

    @BusActor
    private static func changeAccount(_ site: Site) async throws -> Task<Void, Never> {
        let account = try BusClient(site.bus, as: Site.attacker).account
        try await account.signIn("folder://\(site.folder)")
        return Task { @BusActor in
            while !Task.isCancelled {
                try? await account.setPaused(true)
                try? await account.setPaused(false)
            }
        }
    }
}

/// The running attackers.
final class Attackers {
    var clients: [RawClient] = []
    var process: ChildProcess?
    var task: Task<Void, Never>?

    func end() {
        task?.cancel()
        process?.kill()
        clients = []
    }
}
