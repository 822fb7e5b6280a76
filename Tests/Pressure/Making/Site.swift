// SPDX-License-Identifier: Apache-2.0

internal import Glibc
public import UbiquitousStoreTesting

/// A bus with the system bus's policy and limits, and a service on it, as on a machine with several users.
public final class Site: Sendable {
    /// The bus.
    public let bus: PrivateBus
    /// The service.
    public let device: Device
    /// The folder in which users can sign in.
    public let folder: String

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
    /// - Parameter policy: the file of the service's policy.
    /// - Throws: `StartFailure`.
    public init(_ program: PrivateBus.Program = .usual, policy: String) async throws {
        guard geteuid() == 0 else { throw NeedsRoot() }
        bus = try await .start(.system(policy: policy, serviceUser: Self.service), program: program)
        var options = Device.Options()
        options.mode = "system"
        options.user = Self.service
        directory = try TemporaryDirectory()
        folder = try directory.makeDirectory("folder", mode: 0o755, owner: Self.service)
        options.arguments = ["--folder-root", folder]
        options.manifests = Nonsense.declared.map { ManifestText($0) }
        options.logLevel = "warning"
        device = try await .start(on: bus, options)
    }

    /// The service's private memory, in KiB; 0 if the service is gone.
    public var memory: Int { ProcessMemory.privateDirty(of: device.pid) ?? 0 }

    private struct NeedsRoot: Error, CustomStringConvertible {
        let description = "Clients of several users are needed: run it as root"
    }
}
