// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Glibc
internal import StoreBus
public import UbiquitousStoreTesting

/// A bus with the system bus's policy and limits, and a service on it, as on a machine with several users.
public final class Site: Sendable {
    /// The bus.
    public let bus: PrivateBus
    /// The service.
    public let device: Device
    /// The folder in which users can sign in.
    public let folder: String

    /// Whether the program is one that stores nothing, and has a value for every key.
    public let storesNothing: Bool

    private let directory: TemporaryDirectory

    /// The id of the service's user. Debian has these users everywhere, and the bus refuses users it does not know.
    public static let service: UInt32 = 5
    /// The ids of five users of the service.
    public static let users: [UInt32] = [1, 2, 3, 6, 7]
    /// A store that a manifest declares.
    public static let store = Nonsense.declared[0]
    /// The id of the attacking user.
    public static let attacker: UInt32 = 65534

    /// The first of the ids that `script/pressure` grants the attacker in `/etc/subuid`.
    public static let subordinates: UInt32 = 2_000_000

    /// Starts the bus and the service.
    ///
    /// - Parameters:
    ///   - policy: the file of the service's policy.
    ///   - settings: the service's settings file, if it has one.
    ///   - baseline: a program to start instead of the service: the benchmarks' `baseline`, which stores nothing. It
    ///     has the store of the attacker and of the first user.
    /// - Throws: `StartFailure`.
    public init(
        _ program: PrivateBus.Program = .usual, policy: String, settings: String? = nil, baseline: String? = nil
    ) async throws {
        guard geteuid() == 0 else {
            throw SiteFailure(description: "Clients of several users are needed: run it as root")
        }
        storesNothing = baseline != nil
        bus = try await .start(.system(policy: policy, serviceUser: Self.service), program: program)
        directory = try TemporaryDirectory()
        folder = try directory.makeDirectory("folder", mode: 0o755, owner: Self.service)
        if let baseline {
            device = try await Self.startBaseline(baseline, on: bus)
            return
        }
        var options = Device.Options()
        options.mode = "system"
        options.user = Self.service
        options.arguments = ["--folder-root", folder]
        if let settings {
            let file = directory.path + "/settings.conf"
            try settings.write(toFile: file, atomically: true, encoding: .utf8)
            options.arguments += ["--configuration", file]
        }
        options.manifests = Nonsense.declared.map { ManifestText($0) }
        options.logLevel = "warning"
        device = try await .start(on: bus, options)
    }

    private static func startBaseline(_ program: String, on bus: PrivateBus) async throws -> Device {
        var options = Device.Options()
        options.user = service
        options.program = program
        options.isBare = true
        options.arguments = [bus.address] + [try path(of: attacker), try path(of: users[0])]
        let device = try Device(on: bus, options)
        try device.launch()
        let client = try await BusClient(bus)
        try await eventually("the baseline has the service's name") {
            if let exit = device.exit {
                throw SiteFailure(description: "\(program) ended with \(exit): \(device.log)")
            }
            return try await client.serviceOwner() != nil
        }
        return device
    }

    /// Returns the path of a user's store.
    public static func path(of user: UInt32) throws -> String {
        try BusNames.storePath(uid: user, identifier: store)
    }

    /// The service's private memory, in KiB; 0 if the service is gone.
    public var memory: Int { ProcessMemory.privateDirty(of: device.pid) ?? 0 }

    private struct SiteFailure: Error, CustomStringConvertible {
        let description: String
    }
}
