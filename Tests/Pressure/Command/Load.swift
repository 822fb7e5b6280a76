// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Foundation
internal import PressureTesting
internal import UbiquitousStoreTesting

/// Many clients that call at once.
struct Load: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Has many clients call as fast as they are answered.")
    @OptionGroup var options: BusOptions
    @Option(help: "How many clients; half of them subscribe.") var clients = 50
    @Option(help: "For how long.") var seconds = 600

    func run() async throws {
        let site = try await Site(options.bus, policy: options.policy)
        let crowd = try (0..<clients).map { number in
            try ClientProcess(site, number, user: Site.users[number % Site.users.count], seconds: seconds)
        }
        for part in 1...20 {
            try await Task.sleep(for: .milliseconds(seconds * 50))
            say("\(part * seconds / 20) s: \(site.memory) KiB")
        }
        var (reads, writes) = (Latencies(), Latencies())
        for client in crowd {
            let result = try await client.result()
            reads.add(result.reads)
            writes.add(result.writes)
        }
        say("\((reads.count + writes.count) / seconds) calls/s")
        for (name, latencies) in [("reads", reads), ("writes", writes)] {
            say(
                "\(name): \(latencies.count), p50 \(Int(latencies.permille(500))) µs, p99 \(Int(latencies.permille(990))) µs"
            )
        }
        let exit = try await site.device.stop()
        say("The service ended with \(exit). \(site.device.log)")
    }
}

/// A client in a process of its own.
struct ClientProcess {
    private let process: ChildProcess
    private let directory: TemporaryDirectory

    /// - Parameter prepares: whether to set the values first that the client reads.
    init(_ site: Site, _ number: Int, user: UInt32, seconds: Int, prepares: Bool = true) throws {
        directory = try TemporaryDirectory()
        let program = try ChildProcess.built("pressure")
        let command = [program, "client", site.bus.address, "--number", "\(number)", "--seconds", "\(seconds)"]
        process = try ChildProcess(
            command + (prepares ? [] : ["--unprepared"]), as: user,
            output: (directory.path + "/output", directory.path + "/error"))
    }

    /// Waits for the client's end, and reads what it has measured.
    ///
    /// - Parameter patience: how long its last call may take.
    func result(
        patience: Duration = .seconds(60)
    ) async throws -> (reads: Latencies, writes: Latencies, busCalls: Latencies) {
        let end = ContinuousClock.now + patience
        while process.exit == nil {
            if ContinuousClock.now > end { throw Failure("A client waits for an answer for \(patience)") }
            try await Task.sleep(for: .milliseconds(20))
        }
        let exit = try await process.finish()
        let error = (try? String(contentsOfFile: directory.path + "/error", encoding: .utf8)) ?? ""
        guard exit == .code(0) else { throw Failure("A client ended with \(exit): \(error)") }
        let lines = try String(contentsOfFile: directory.path + "/output", encoding: .utf8).split(
            separator: "\n", omittingEmptySubsequences: false)
        guard lines.count >= 3 else { throw Failure("A client has measured nothing") }
        let measured = lines.map { Latencies(text: String($0)) }
        return (measured[0], measured[1], measured[2])
    }
}

/// The process of one client.
struct Client: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Is one client.", shouldDisplay: false)
    @Argument(help: "The bus.") var address: String
    @Option(help: "Of how many clients it is which.") var number: Int
    @Option(help: "For how long.") var seconds: Int
    @Flag(help: "Whether every key has a value anyway.") var unprepared = false

    func run() async throws {
        let caller = try await Caller(
            BusClient(address: address), store: "org.example.App\(number % 2)", seed: UInt64(number))
        if number % 4 < 2 { try await caller.subscribe() }
        if !unprepared { try await caller.prepare() }
        try await caller.call(for: .seconds(seconds))
        say(await caller.reads.text)
        say(await caller.writes.text)
        say(await caller.busCalls.text)
    }
}
