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

    /// Runs a test at a desk of its own.
    ///
    /// - Parameter areSeveral: whether the bus lets other users in.
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

    /// The settings of the usual domain in this process.
    func settings(_ domain: String = editor) -> DefaultsDomains.UserDefaults {
        DefaultsDomains.UserDefaults(domain: domain, bus: bus.address, outboxes: outboxes)
    }

    /// Where this process puts what the service does not take.
    var outboxes: String { device.directory.path + "/outboxes" }

    /// Waits until the service has all that was set.
    func settle(_ defaults: DefaultsDomains.UserDefaults) async throws {
        try await eventually("all is on the disk") { defaults.synchronize() && !defaults.isUnsettled }
    }

    /// The same in another program.
    @BusActor func other(_ domain: String = editor, isHost: Bool = false) throws -> DomainClient {
        try BusClient(bus).domain(domain, isHost: isHost)
    }

    /// Returns when observers have been told of everything so far.
    static func drain() async {
        await withCheckedContinuation { continuation in
            DefaultsDomains.UserDefaults.afterObservers { continuation.resume() }
        }
    }

    // MARK: A program

    var state: String { device.directory.path + "/app-state" }

    /// Starts the program, with what it says in ``output``.
    func start(
        _ words: [String], as user: UInt32? = nil, program: String? = nil, variables: [String: String] = [:]
    ) throws -> ChildProcess {
        var environment = ProcessInfo.processInfo.environment
        environment["UBIQUITOUS_STORE_BUS"] = bus.address
        environment["UBIQUITOUS_STORE_DOMAIN"] = editor
        environment["XDG_STATE_HOME"] = state
        environment.merge(variables) { $1 }
        // A program's output is added to the file.
        unlink(device.directory.path + "/app-output")
        return try ChildProcess(
            [try program ?? ChildProcess.built("defaults-app")] + words, as: user, environment: environment,
            output: (device.directory.path + "/app-output", device.directory.path + "/app-error"))
    }

    /// Runs the program to its end.
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
