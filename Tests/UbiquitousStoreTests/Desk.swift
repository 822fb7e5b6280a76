// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
public import PropertyList
import SDBus
import Testing
import UbiquitousStoreTesting

@testable import UbiquitousStore

/// The store that the usual manifest declares.
let notes = "org.example.Notes"

/// A private bus with a real service on it, which a test can stop, kill and restart.
final class Desk: Sendable {
    let bus: PrivateBus
    let device: Device

    private init(_ options: Device.Options, started isStarted: Bool) async throws {
        bus = try await .start()
        device = try Device(on: bus, options)
        if isStarted { try await device.start() }
    }

    /// Runs a test with its own bus and service.
    ///
    /// - Parameters:
    ///   - isStarted: whether the service runs at the start.
    ///   - manifests: the manifests that declare the stores' identifiers.
    ///   - arguments: more arguments for the service.
    static func with(
        started isStarted: Bool = true, manifests: [ManifestText] = [ManifestText(notes)], arguments: [String] = [],
        _ body: (Desk) async throws -> Void
    ) async throws {
        var options = Device.Options()
        (options.manifests, options.arguments) = (manifests, arguments)
        let desk = try await Desk(options, started: isStarted)
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

    /// Opens a connection of the library.
    func connect() async throws -> ServiceConnection {
        try await ServiceConnection.open(bus.busAddress, description: "test")
    }

    /// Returns the usual store, as another process would use it.
    func otherProcess(_ identifier: String = notes) async throws -> StoreObject {
        try await connect().store(identifier)
    }
}

/// Literals as values, for short tests.
extension Value: ExpressibleByIntegerLiteral, ExpressibleByStringLiteral, ExpressibleByBooleanLiteral {
    /// The integer.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// The string.
    public init(stringLiteral value: String) { self = .string(Text(value)) }
    /// The boolean.
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
}

/// The code of the error that `body` throws; `nil` if it throws none.
func code(_ body: () async throws -> Void) async -> UbiquitousStoreError.Code? {
    do {
        try await body()
        return nil
    } catch let error as UbiquitousStoreError {
        return error.code
    } catch {
        Issue.record("\(type(of: error)): \(error)")
        return nil
    }
}

extension NSUbiquitousKeyValueStore {
    /// Synchronizes until the service answers. One call waits for at most a second, too short for a busy machine.
    func waitForAnswer() async throws {
        try await eventually("the service answers") { synchronize() }
    }
}
