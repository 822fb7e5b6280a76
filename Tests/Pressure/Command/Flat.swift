// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Foundation
internal import Glibc
internal import PressureTesting
internal import PropertyList
internal import SDBus
internal import UbiquitousStoreTesting

/// Measures that connections, users and accounts that come and go leave nothing behind.
struct Flat: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Has many connections, users and accounts, and says what each costs and what is left.",
        discussion: """
            Fails if the last ones cost twice as much as the first, or if the service keeps more than it may: for the \
            last nine tenths of connections and users a few descriptors and little memory; for each account four \
            descriptors and 160 KiB, and no thread. With 0 of something it is left out.
            """)
    @OptionGroup var options: BusOptions
    @Option(help: "How many connections come and go.") var connections = 10_000
    @Option(help: "How many users of those in /etc/passwd from the number 20000 on come and go.") var users = 1000
    @Option(help: "How many of them have an account.") var accounts = 500

    func run() async throws {
        try await comeAndGo("connections", connections, Room(descriptors: 4, memory: 512)) { site, _ in
            let client = try BusClient(site.bus, as: Site.attacker)
            try await client.manager("Identify")
            client.connection.close()
        }
        // Of users who are gone, at most eight databases stay open for a while.
        try await comeAndGo("users", users, Room(descriptors: 8 * 3 + 4, memory: 2048)) { site, number in
            let client = try BusClient(site.bus, as: 20_000 + UInt32(number))
            try await client.store(Site.store).set("key", .integer(Int64(number)))
            client.connection.close()
        }
        // Accounts stay: each has its database open, and watches its folder.
        let room = Room(descriptors: 4 * accounts * 9 / 10 + 4, memory: 160 * accounts * 9 / 10)
        let site = try await comeAndGo("accounts", accounts, room) { site, number in
            let client = try BusClient(site.bus, as: 20_000 + UInt32(number))
            try await client.account.signIn("folder://\(site.folder)")
            try await client.account.syncNow()
            client.connection.close()
        }
        for second in 0..<60 where site.threads > 8 {
            try await Task.sleep(for: .seconds(1))
            if second == 59 { throw Failure("\(accounts) accounts at rest have \(site.threads) threads") }
        }
        say("accounts at rest: \(site.threads) threads, \(site.memory) KiB")
    }

    @discardableResult @BusActor
    private func comeAndGo(
        _ what: String, _ count: Int, _ room: Room, _ body: @BusActor (Site, Int) async throws -> Void
    ) async throws -> Site {
        let site = try await Site(options.bus, policy: options.policy)
        if count == 0 { return site }
        var parts: [Latencies] = []
        var first: Room?
        for part in 0..<10 {
            var latencies = Latencies()
            for number in part * count / 10..<(part + 1) * count / 10 {
                let started = ContinuousClock.now
                try await body(site, number)
                latencies.add(ContinuousClock.now - started)
            }
            parts.append(latencies)
            first = first ?? site.used
            say(
                """
                \((part + 1) * count / 10) \(what): p50 \(Int(latencies.permille(500))) µs, \(site.memory) KiB, \
                \(site.descriptors) descriptors, \(site.threads) threads
                """)
        }
        // Of three tenths, so that other work on the machine during one of them counts for nothing.
        let medians = parts.map { $0.permille(500) }
        guard medians[7...].sorted()[1] < 2 * medians[..<3].sorted()[1] else {
            throw Failure("The last \(what) cost more than the first ones")
        }
        try await judge(what, site, first ?? Room(), room)
        return site
    }

    /// Gives the service a while to let go of the last ones.
    private func judge(_ what: String, _ site: Site, _ first: Room, _ room: Room) async throws {
        for _ in 0..<30 where !site.used.fits(first, room) { try await Task.sleep(for: .seconds(1)) }
        if site.device.exit != nil { throw Failure("The service ended: \(site.device.log)") }
        guard site.used.fits(first, room) else {
            throw Failure("After a tenth of the \(what) the service had \(first); after all, \(site.used)")
        }
    }
}

/// What a process has.
private struct Room: CustomStringConvertible {
    var descriptors = 0
    /// In KiB.
    var memory = 0

    var description: String { "\(descriptors) descriptors and \(memory) KiB" }

    /// Whether it is at most so much more than another.
    func fits(_ other: Room, _ more: Room) -> Bool {
        descriptors <= other.descriptors + more.descriptors && memory <= other.memory + more.memory
    }
}

extension Site {
    fileprivate var used: Room { Room(descriptors: descriptors, memory: memory) }
    fileprivate var descriptors: Int { entries("fd") }
    fileprivate var threads: Int { entries("task") }

    private func entries(_ name: String) -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(device.pid)/\(name)").count) ?? 0
    }
}
