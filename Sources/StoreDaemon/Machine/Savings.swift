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
        let reader = Reader()
        let read: @BusActor @Sendable () -> Void = { [weak self] in
            reader.read { service in
                let isSo = try? await service.property(path, name, property, decode: decode)
                guard let self else { return }
                let former = (self.isMetered, self.savesPower)
                note(self, isSo ?? false)
                if former != (self.isMetered, self.savesPower) { self.onChange?() }
            }
        }
        let service = ObservedService(name, on: connection) { _ in read() }
        reader.service = service
        services.append(service)
        try await service.follow([.init(rule: ObservedService.changes(of: path, name)) { _ in read() }])
    }

    /// Reads from a service when it signals a change. Users may cause many signals, so there is a pause after each time.
    @BusActor
    private final class Reader {
        weak var service: ObservedService?
        private var isStale = false
        private var reading: Task<Void, Never>?

        func read(_ body: @escaping @BusActor (ObservedService) async -> Void) {
            isStale = true
            guard reading == nil else { return }
            reading = EventLoop.task { [weak self] in
                while let self, isStale, let service {
                    isStale = false
                    await body(service)
                    await EventLoop.pause(ObservedService.rest)
                }
                self?.reading = nil
            }
        }
    }
}
