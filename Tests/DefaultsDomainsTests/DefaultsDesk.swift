// SPDX-License-Identifier: Apache-2.0

import DefaultsDomains
import Foundation
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// The domain that tests use.
let editor = "org.example.Editor"

/// A private bus with a real service on it.
final class DefaultsDesk: Sendable {
    let bus: PrivateBus
    let device: Device

    private init(started isStarted: Bool, users areSeveral: Bool, _ options: Device.Options) async throws {
        let policy = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "dbus/org.example.UbiquitousStore.conf").path
        bus = try await .start(areSeveral ? .system(policy: policy, serviceUser: geteuid()) : .session)
        device = try Device(on: bus, options)
        if isStarted { try await device.start() }
    }

    /// Runs a test with its own bus and service.
    ///
    /// - Parameter areSeveral: whether the bus admits other users.
    static func with(
        started isStarted: Bool = true, users areSeveral: Bool = false, _ options: Device.Options = Device.Options(),
        _ body: (DefaultsDesk) async throws -> Void
    ) async throws {
        let desk = try await DefaultsDesk(started: isStarted, users: areSeveral, options)
        defer {
            desk.device.signal(SIGCONT)
            desk.device.kill()
            desk.bus.end()
        }
        do {
            try await body(desk)
        } catch {
            Issue.record("\(error)\nThe service said:\n\(desk.device.log.suffix(4000))")
        }
    }

    /// Returns the settings of a domain, by default the usual one, in this process.
    func settings(_ domain: String = editor) -> DefaultsDomains.UserDefaults {
        DefaultsDomains.UserDefaults(domain: domain, bus: bus.address, outboxes: outboxes)
    }

    /// The directory of this process's outboxes, for writes that wait for the service.
    var outboxes: String { device.directory.path + "/outboxes" }

    /// Waits until everything that was set is in the service and on disk.
    func settle(_ defaults: DefaultsDomains.UserDefaults) async throws {
        try await eventually("all is on the disk") { defaults.synchronize() && !defaults.isUnsettled }
    }

    /// Returns a client of the domain that acts as another program.
    @BusActor func other(_ domain: String = editor, isHost: Bool = false) throws -> DomainClient {
        try BusClient(bus).domain(domain, isHost: isHost)
    }

    /// Returns when observers have received everything so far.
    static func drain() async {
        await withCheckedContinuation { continuation in
            DefaultsDomains.UserDefaults.afterObservers { continuation.resume() }
        }
    }

    // MARK: The program

    var state: String { device.directory.path + "/app-state" }

    /// Starts the program; ``output`` has what it prints.
    func start(
        _ words: [String], as user: UInt32? = nil, program: String? = nil, variables: [String: String] = [:]
    ) throws -> ChildProcess {
        var environment = ProcessInfo.processInfo.environment
        environment["UBIQUITOUS_STORE_BUS"] = bus.address
        environment["UBIQUITOUS_STORE_DOMAIN"] = editor
        environment["XDG_STATE_HOME"] = state
        environment.merge(variables) { $1 }
        // Programs append their output to the file.
        unlink(device.directory.path + "/app-output")
        return try ChildProcess(
            [try program ?? ChildProcess.built("defaults-app")] + words, as: user, environment: environment,
            output: (device.directory.path + "/app-output", device.directory.path + "/app-error"))
    }

    /// Runs the program until it ends.
    func run(_ words: String..., program: String? = nil, variables: [String: String] = [:]) async throws -> (
        exit: ChildProcess.Exit, output: String
    ) {
        let exit = try await start(words, program: program, variables: variables).finish()
        return (exit, output)
    }

    var output: String {
        let text = (try? String(contentsOfFile: device.directory.path + "/app-output", encoding: .utf8)) ?? ""
        return text.trimmingCharacters(in: .newlines)
    }

    var error: String { (try? String(contentsOfFile: device.directory.path + "/app-error", encoding: .utf8)) ?? "" }
}
