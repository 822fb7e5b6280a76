// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import PressureTesting
internal import PropertyList
internal import SDBus
internal import StoreBus
internal import UbiquitousStoreTesting

/// Sends malformed messages.
struct Messages: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sends nonsense from a seed; fails if the service ends or an answer is missing or wrong.")
    @OptionGroup var options: BusOptions
    @Option(help: "How many messages.") var count = 1_000_000
    @Option(help: "What they are made of.") var seed: UInt64 = 1
    @Option(help: "The interface's definition, which lists the errors of each member.")
    var definition = "dbus/org.example.UbiquitousStore.xml"

    func run() async throws {
        let site = try await Site(options.bus, policy: options.policy)
        let user = try await BusClient(site.bus, as: Site.users[1]).store(Site.store)
        try await user.set("key", .string("kept"))
        let fuzzer = try MessageFuzzer(site, seed: seed, errors: try DocumentedErrors(file: definition))
        for _ in 0..<10 where site.device.exit == nil {
            try fuzzer.send(count / 10)
            say("\(fuzzer.report.sent) messages, \(site.memory) KiB")
        }
        if site.device.exit == nil { try await compare(site, user) }
        try judge(fuzzer.report, site.device)
    }

    /// Prints how much memory the same data needs after a restart, and checks that a value is still there.
    private func compare(_ site: Site, _ user: StoreClient) async throws {
        guard try await user.value("key") == .string("kept") else { throw Failure("A value is gone") }
        guard try await site.device.stop() == .code(0) else { return }
        try await site.device.start()
        let root = try await BusClient(site.bus)
        let stores = try await root.stores()
        for path in stores { _ = try await StoreClient(root, path: path).everything() }
        say("\(site.memory) KiB after a restart, when all \(stores.count) stores were read")
        try await site.device.stop()
    }

    private func judge(_ report: MessageFuzzer.Report, _ device: Device) throws {
        for (name, count) in report.answers.sorted(by: { $0.value > $1.value }) {
            say("\(count)  \(name.isEmpty ? "no error" : name)")
        }
        say("\(report.broken) were no messages; the bus broke off \(report.disconnections) connections.")
        for (name, call) in report.strangers { say("\(name) is not documented for \(call)") }
        for call in report.unanswered.prefix(20) { say("not answered: \(call)") }
        let log = device.log
        if !log.isEmpty { say("The service said:\n\(log.suffix(3000))") }
        guard report.strangers.isEmpty, report.unanswered.isEmpty, device.exit == .code(0) else {
            throw Failure("The service did not stand it: \(device.exit.map { "\($0)" } ?? "it runs")")
        }
    }
}

/// A failure of the service under pressure.
struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

extension BusClient {
    /// The paths of all stores of all users, which only root may list.
    fileprivate func stores() async throws -> [String] {
        try await manager("ListStores") {
            try $0.append(1 as UInt64)
        } decode: { reply in
            var paths: [String] = []
            _ = try reply.enterContainer("a", "(uso)")
            while try reply.enterContainer("r", "uso") {
                _ = (try reply.readUInt32(), try reply.readString())
                paths.append(try reply.readString())
                try reply.exitContainer()
            }
            return paths
        }
    }
}
