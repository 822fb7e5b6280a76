// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import SDBus
import StoreBus
import Synchronization
import Testing
import UbiquitousStoreTesting

/// Users of this machine, beside root.
enum Users {
    /// Whether the tests can have several users.
    static let areSeveral = geteuid() == 0
    /// Two who own nothing.
    static let nobody: UInt32 = 65534
    static let daemon: UInt32 = 1
    /// As whom the service runs: not as root, which no wall stops.
    static let service: UInt32? = areSeveral ? 5 : nil
    /// As whom a client is if it doesn't matter: not as root, either.
    static let client: UInt32? = areSeveral ? nobody : nil

    static let needsRoot: Comment =
        "it needs root, to have a service and clients of several users; run the tests as root once"
}

/// A file of the repository.
func repositoryFile(_ path: String, here: String = #filePath) -> String {
    URL(filePath: here).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: path).path
}

/// The store that the usual manifest declares.
let notes = "org.example.Notes"

/// What values in tests hold where it must not get into a log.
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

    /// A new connection, of a user without rights if nobody is named.
    func client(as user: UInt32? = Users.client) throws -> BusClient { try BusClient(bus, as: user) }

    /// The usual store, on a new connection.
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

/// Runs a test on a machine of its own, and sees that the service doesn't crash and tells no secrets.
///
/// - Parameters:
///   - isStarted: whether the service is to be started before.
///   - change: changes what it is started with: in user mode, with a manifest for the usual store.
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

/// What holds of every device, whatever a test does with it.
func check(_ device: Device) {
    #expect(device.leakedSecrets.isEmpty)
    #expect(!device.log.contains("Fatal error") && !device.log.contains("Crash"), "\(device.log.suffix(4000))")
    if case .signal(let number) = device.exit, number != SIGKILL {
        Issue.record("The service was ended by signal \(number)\n\(device.log.suffix(4000))")
    }
}

/// Lets a few tests at a time have machines: there are more tests than memory.
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

/// Does what blocks, on a thread of its own: all tests share the loop's thread, and a few others the rest.
func elsewhere<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
    }
}

/// Does something so many times at once.
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

// MARK: Ends

/// Calls a service that ends after an idle second, and starts it again where it has ended before the call came: a busy
/// machine may take longer.
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

/// The error that `body` throws; `nil` if it throws none.
@BusActor
func failure(_ body: @BusActor () async throws -> Void) async -> BusError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? BusError ?? BusError(name: "\(type(of: error))", message: "\(error)")
    }
}

/// The last word of the name of the error that `body` throws; "" if it throws none.
@BusActor
func errorName(_ body: @BusActor () async throws -> Void) async -> String {
    await failure(body).map { $0.name.split(separator: ".").last.map(String.init) ?? $0.name } ?? ""
}
