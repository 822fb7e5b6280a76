// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import SDBus
import StoreBus
import Synchronization
import Testing
import UbiquitousStoreTesting

/// User ids of this machine, besides root's.
enum Users {
    /// Whether the tests can act as several users.
    static let areSeveral = geteuid() == 0
    /// Two users who own nothing.
    static let nobody: UInt32 = 65534
    static let daemon: UInt32 = 1
    /// The user as whom the service runs: not root, whom no permission stops. `nil` without root.
    static let service: UInt32? = areSeveral ? 5 : nil
    /// The user as whom a client runs where it doesn't matter: not root, either.
    static let client: UInt32? = areSeveral ? nobody : nil

    static let needsRoot: Comment =
        "it needs root, to have a service and clients of several users; run the tests as root once"
}

/// Returns the path of a file in the repository.
func repositoryFile(_ path: String, here: String = #filePath) -> String {
    URL(filePath: here).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: path).path
}

/// The store that the usual manifest declares.
let notes = "org.example.Notes"

/// The content of values that must not get into a log.
let secret = "s3cret-0f-the-tests"

/// A bus with the system bus's limits and policy, and a device on it.
@BusActor
final class Machine {
    let bus: PrivateBus
    let device: Device

    fileprivate init(_ options: Device.Options) async throws {
        bus = try await .start(
            .system(
                policy: repositoryFile("dbus/org.example.UbiquitousStore.conf"),
                serviceUser: options.user ?? geteuid()
            )
        )
        device = try Device(on: bus, options)
        device.keepSecret(secret)
    }

    /// Returns a new connection, by default of a user without rights.
    func client(as user: UInt32? = Users.client) throws -> BusClient { try BusClient(bus, as: user) }

    /// Returns a store on a new connection, by default the usual one.
    func store(_ identifier: String = notes, as user: UInt32? = Users.client) throws -> StoreClient {
        try client(as: user).store(identifier)
    }

    /// Runs `busctl call` on the service.
    func busctl(_ path: String, _ interface: String, _ rest: String..., as user: UInt32? = Users.client) async throws
        -> ProgramResult
    {
        try await run(
            ["busctl", "--address=\(bus.address)", "call", BusNames.service, path, interface] + rest,
            as: user
        )
    }
}

/// Runs a test on a machine of its own, and checks that the service neither crashes nor logs secrets.
///
/// - Parameters:
///   - isStarted: whether to start the service before the test.
///   - change: changes the service's options; by default it runs in user mode, with a manifest for the usual store.
@BusActor
func withMachine(
    started isStarted: Bool = true,
    _ change: (inout Device.Options) -> Void = { _ in },
    _ body: @BusActor (Machine) async throws -> Void
) async throws {
    await Turnstile.shared.enter()
    defer { Turnstile.shared.leave() }
    var options = Device.Options()
    options.user = Users.service
    options.manifests = [ManifestText(notes)]
    change(&options)
    let machine = try await Machine(options)
    do {
        if isStarted { try await machine.device.start() }
        try await body(machine)
    } catch {
        Issue.record("\(error)\nThe service said:\n\(machine.device.log.suffix(4000))")
    }
    check(machine.device)
    machine.device.kill()
    machine.bus.end()
}

/// Checks what must hold for every device after any test.
func check(_ device: Device) {
    #expect(device.leakedSecrets.isEmpty)
    #expect(!device.log.contains("Fatal error") && !device.log.contains("Crash"), "\(device.log.suffix(4000))")
    if case .signal(let number) = device.exit, number != SIGKILL {
        Issue.record("The service was ended by signal \(number)\n\(device.log.suffix(4000))")
    }
}

/// Limits how many tests have machines at a time, because all of them together need too much memory.
@BusActor
final class Turnstile {
    static let shared = Turnstile(places: max(2, ProcessInfo.processInfo.activeProcessorCount))

    private var places: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    private init(places: Int) { self.places = places }

    func enter() async {
        if places > 0 {
            places -= 1
        } else {
            await withCheckedContinuation { waiting.append($0) }
        }
    }

    func leave() {
        if waiting.isEmpty { places += 1 } else { waiting.removeFirst().resume() }
    }
}

/// Runs blocking work on a thread of its own, because all tests share the loop's thread and a few others.
func elsewhere<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
    }
}

/// Runs something a number of times concurrently, and returns the results.
@BusActor
func atOnce<Result: Sendable>(
    _ count: Int,
    _ body: @escaping @BusActor @Sendable (Int) async throws -> Result
) async throws -> [Result] {
    let tasks = (0..<count).map { index in Task { @BusActor in try await body(index) } }
    var results: [Result] = []
    for task in tasks { results.append(try await task.value) }
    return results
}

// MARK: Services that exit

/// Calls a service that exits after an idle second. If it has exited before the call arrives, as it may on a busy
/// machine, starts it again and retries.
/// - Returns: the last word of the name of the error that `body` throws; "" if it throws none.
@BusActor
func errorNameBeforeItsEnd(_ device: Device, _ body: @BusActor () async throws -> Void) async throws -> String {
    while true {
        let name = await errorName(body)
        guard ["ServiceUnknown", "NameHasNoOwner", "NoReply"].contains(name) else { return name }
        #expect(try await device.finish() == .code(0))
        try await device.start()
    }
}

// MARK: Errors

/// Returns the error that `body` throws; `nil` if it throws none.
@BusActor
func failure(_ body: @BusActor () async throws -> Void) async -> BusError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? BusError ?? BusError(name: "\(type(of: error))", message: "\(error)")
    }
}

/// Returns the last word of the name of the error that `body` throws; "" if it throws none.
@BusActor
func errorName(_ body: @BusActor () async throws -> Void) async -> String {
    await failure(body).map { $0.name.split(separator: ".").last.map(String.init) ?? $0.name } ?? ""
}
