// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// Two devices on two buses, and a folder between them.
@BusActor
final class TwoDevices {
    let laptop: Device
    let phone: Device
    let directory: TemporaryDirectory

    /// The mount point of the laptop's small disk; `nil` if it has none of its own.
    let disk: String?

    fileprivate init(
        users areSeveral: Bool, diskBytes: Int?, _ change: (inout Device.Options) -> Void
    ) async throws {
        directory = try TemporaryDirectory()
        _ = try directory.makeDirectory("folder", mode: 0o700)
        disk = try diskBytes.map { [directory] in try directory.mountSmallDisk("disk", bytes: $0) }
        var devices: [Device] = []
        for name in ["laptop", "phone"] {
            var options = Device.Options()
            options.name = name
            options.manifests = [ManifestText(notes)]
            if name == "laptop" { options.stateDirectory = disk }
            change(&options)
            if areSeveral { options.user = Users.service }
            devices.append(try await Device.start(on: .start(Self.bus(users: areSeveral)), options))
        }
        (laptop, phone) = (devices[0], devices[1])
        for device in devices { device.keepSecret(secret) }
    }

    /// A folder belongs to its user, so on a session bus the service has to run as that user.
    private static func bus(users areSeveral: Bool) -> PrivateBus.Kind {
        guard areSeveral else { return .session }
        let policy = repositoryFile("dbus/org.example.UbiquitousStore.conf")
        return .system(policy: policy, serviceUser: Users.service ?? geteuid())
    }

    /// The folder's path.
    var folder: String { directory.path + "/folder" }
    /// The account's URL: the folder's, unless a test sets another one.
    lazy var url = "folder://\(folder)"

    /// Makes another, empty folder, and returns its path.
    func makeFolder(_ name: String) throws -> String { try directory.makeDirectory(name, mode: 0o700) }

    /// Returns what is in the file of the account that a device is signed in to.
    func accountFile(of device: Device) throws -> [String: Any] {
        let data = try Data(contentsOf: URL(filePath: Self.accountFilePath(of: device)))
        return try #require(try PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any])
    }

    /// Changes what is in that file, as a crash between two steps leaves it. The service must not run.
    func changeAccountFile(of device: Device, _ change: (inout [String: Any]) -> Void) throws {
        var file = try accountFile(of: device)
        change(&file)
        let data = try PropertyListSerialization.data(fromPropertyList: file, format: .binary, options: 0)
        // The file stays the same one, with its owner.
        let handle = try FileHandle(forWritingTo: URL(filePath: Self.accountFilePath(of: device)))
        try handle.truncate(atOffset: 0)
        try handle.write(contentsOf: data)
        try handle.close()
    }

    private static func accountFilePath(of device: Device) -> String {
        "\(device.stateDirectory)/u\(geteuid())/account.plist"
    }

    /// Fills a disk except for a number of pages, while the service may be writing there too.
    func fill(_ disk: String, leaving pages: UInt) throws {
        let descriptor = open(disk + "/filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(descriptor) }
        var room = statvfs()
        repeat {
            try #require(descriptor >= 0 && statvfs(disk, &room) == 0)
        } while room.f_bavail > pages && write(descriptor, [UInt8](repeating: 0, count: 4096), 4096) > 0
    }

    func account(_ device: Device) throws -> AccountClient { try BusClient(device.bus).account }

    func store(_ device: Device, _ identifier: String = notes) throws -> StoreClient {
        try BusClient(device.bus).store(identifier)
    }

    /// Signs both devices in, one after the other.
    func join() async throws {
        try await account(laptop).join(url)
        // So that the phone finds the laptop's values with its first poll.
        try await account(laptop).syncNow()
        try await account(phone).join(url)
    }

    /// Syncs until both devices show the same and nothing is pending.
    func converge(_ identifier: String = notes) async throws -> [Text: Value] {
        var values: [Text: Value] = [:]
        try await eventually("both devices show the same") {
            try await account(laptop).syncNow()
            try await account(phone).syncNow()
            values = try await store(laptop, identifier).everything()
            let others = try await store(phone, identifier).everything()
            let pending = try await account(laptop).property("PendingChanges")
            return values == others && pending == .integer(0)
        }
        return values
    }
}

/// Runs a test with two devices, and checks that the services neither crash nor log secrets.
/// - Parameters:
///   - areSeveral: whether the buses let other users in, as system buses do.
///   - change: changes a device's options; by default it is in user mode, with a manifest for the usual store.
@BusActor
func withTwoDevices(
    users areSeveral: Bool = false, diskBytes: Int? = nil, _ change: (inout Device.Options) -> Void = { _ in },
    _ body: @BusActor (TwoDevices) async throws -> Void
) async throws {
    await Turnstile.shared.enter()
    defer { Turnstile.shared.leave() }
    let devices = try await TwoDevices(users: areSeveral, diskBytes: diskBytes, change)
    do { try await body(devices) } catch {
        Issue.record(
            """
            \(error)
            The laptop said:
            \(devices.laptop.log.suffix(3000))
            The phone said:
            \(devices.phone.log.suffix(3000))
            """
        )
    }
    for device in [devices.laptop, devices.phone] {
        check(device)
        device.kill()
        device.bus.end()
    }
}

extension AccountClient {
    /// Returns the steps that CheckBackend reports for a URL.
    func check(_ url: String, _ options: KeyValuePairs<String, Value> = [:]) async throws -> [[String: Value]] {
        try await call("CheckBackend") { message in
            try message.append(url)
            try message.appendDictionary { for (name, value) in options { try message.append(entry: name, value) } }
        } decode: { answer in
            var steps: [[String: Value]] = []
            _ = try answer.enterContainer("a", "a{sv}")
            while try !answer.isAtEnd(whole: false) {
                steps.append(Dictionary(uniqueKeysWithValues: try answer.readValues().map { ($0.key, $0.value) }))
            }
            return steps
        }
    }
}
