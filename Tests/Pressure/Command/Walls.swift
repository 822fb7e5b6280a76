// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import PressureTesting
internal import PropertyList
internal import SDBus
internal import StoreBus
internal import UbiquitousStoreTesting

/// Measures what others notice of an attack.
struct Walls: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Has a user do harm, and says what another one notices, and what the service needs meanwhile.")
    @OptionGroup var options: BusOptions
    @Option(help: "How long to measure without and with each attack.") var seconds = 10

    func run() async throws {
        for attack in Attack.allCases {
            let site = try await Site(options.bus, policy: options.policy)
            let store = try await BusClient(site.bus, as: Site.attacker).store(Site.store)
            try await store.set("large", .data([UInt8](repeating: 1, count: 1_000_000)))
            let before = try await measure(site)
            let attackers = try attack.begin(site.bus, await store.path)
            let (during, most) = try await measure(site)
            withExtendedLifetime(attackers) {}
            say(
                "\(attack.rawValue): p99 \(Int(before.0.permille(990))) µs, then \(Int(during.permille(990))) µs; "
                    + "p50 \(Int(before.0.permille(500))) µs, then \(Int(during.permille(500))) µs; most \(most) KiB")
            guard site.device.exit == nil else { throw Failure("The service ended: \(site.device.log)") }
        }
    }

    /// How long another user's calls take, and how much memory the service has at most.
    private func measure(_ site: Site) async throws -> (Latencies, Int) {
        let client = try ClientProcess(site, 0, user: Site.users[0], seconds: seconds)
        var most = 0
        for _ in 0..<seconds * 10 {
            try await Task.sleep(for: .milliseconds(100))
            most = max(most, site.memory)
        }
        let result = try await client.result()
        var all = result.reads
        all.add(result.writes)
        return (all, most)
    }
}

/// What a user may try.
private enum Attack: String, CaseIterable {
    case deaf = "a client asks for 127 MB and reads nothing"
    case manyDeaf = "50 clients ask for 127 MB each and read nothing"
    case stopped = "a subscriber reads nothing, while its user writes"
    case matches = "a client has 600 matches"
    case connections = "as many connections as there may be, each with as many subscriptions as there may be"
    case pending = "20 clients wait for a thousand calls each"

    func begin(_ bus: PrivateBus, _ path: String) throws -> [RawClient] {
        switch self {
        case .deaf: return [try asker(bus, path)]
        case .manyDeaf: return try (0..<50).map { _ in try asker(bus, path) }
        case .stopped:
            let deaf = try RawClient(bus, as: Site.attacker)
            deaf.store(path, "Subscribe", 1)
            let writer = try RawClient(bus, as: Site.attacker)
            let keys = (0..<100).map { "key \($0)" + String(repeating: "k", count: 100) }
            for number in 0..<2000 {
                writer.set(path, keys[number % 100], UInt32(number), later: true)
            }
            for _ in 0..<50 { _ = writer.turn(waiting: 10) }
            return [deaf, writer]
        case .matches:
            let client = try RawClient(bus, as: Site.attacker)
            for number in 0..<600 {
                client.addMatch("type='signal',sender='\(BusNames.service)',arg0='\(number)'")
                _ = client.turn(waiting: 0)
            }
            return [client]
        case .connections:
            // One is the service's user's own, which set the value.
            return try (0..<250).map { _ in
                let client = try RawClient(bus, as: Site.attacker)
                for _ in 0..<70 { client.store(path, "Subscribe", 1) }
                return client
            }
        case .pending:
            return try (0..<20).map { _ in
                let client = try RawClient(bus, as: Site.attacker)
                for _ in 0..<1000 { client.store(path, "Synchronize", 0, later: true) }
                _ = client.turn(waiting: 0)
                return client
            }
        }
    }

    private func asker(_ bus: PrivateBus, _ path: String) throws -> RawClient {
        let client = try RawClient(bus, as: Site.attacker)
        client.askForMuch(path)
        return client
    }
}
