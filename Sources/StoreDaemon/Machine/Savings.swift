// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// What the machine has to save: traffic, as NetworkManager reports it, and power, as power-profiles-daemon does.
@BusActor
final class Savings {
    /// Whether the network is metered.
    private(set) var isMetered = false
    /// Whether the machine saves power.
    private(set) var savesPower = false
    /// Called when either has changed.
    var onChange: (@BusActor () -> Void)?

    private let connection: BusConnection
    private var services: [ObservedService] = []

    init(on connection: BusConnection) { self.connection = connection }

    /// Begins to follow both services, which may start later.
    func start() async throws {
        try await follow(
            "org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager", "Metered"
        ) {
            // NM_METERED_YES and NM_METERED_GUESS_YES.
            [1, 3].contains(try $0.readUInt32())
        } note: {
            $0.isMetered = $1
        }
        // Every version has this name.
        try await follow("net.hadess.PowerProfiles", "/net/hadess/PowerProfiles", "ActiveProfile") {
            try $0.readString() == "power-saver"
        } note: {
            $0.savesPower = $1
        }
    }

    /// Follows a property of a service's object. The interface has the service's name.
    private func follow(
        _ name: String, _ path: String, _ property: String,
        _ decode: @escaping @BusActor @Sendable (Message) throws -> Bool,
        note: @escaping @BusActor @Sendable (Savings, Bool) -> Void
    ) async throws {
        let service = ObservedService(name, on: connection)
        services.append(service)
        service.read = { [weak self, weak service] in
            let isSo = try? await service?.property(path, name, property, decode: decode)
            guard let self else { return }
            let former = (isMetered, savesPower)
            note(self, isSo ?? false)
            if former != (isMetered, savesPower) { onChange?() }
        }
        let changes = ObservedService.Signal(rule: ObservedService.changes(of: path, name)) { [weak service] _ in
            service?.readSoon()
        }
        try await service.follow([changes]) { [weak service] _ in service?.readSoon() }
    }
}
