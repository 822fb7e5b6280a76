// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// What the machine is to save: money, as NetworkManager has it, and power, as power-profiles-daemon does.
@BusActor
final class Savings {
    /// The network is paid for by what goes over it.
    private(set) var isMetered = false
    /// The machine is to save power.
    private(set) var savesPower = false
    /// Called when one of them is another one.
    var onChange: (@BusActor () -> Void)?

    private let connection: BusConnection
    private var neighbours: [Neighbour] = []

    init(on connection: BusConnection) { self.connection = connection }

    /// Begins to follow both; those that aren't there may come.
    func start() async throws {
        try await follow(
            "org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager", "Metered"
        ) {
            // NM_METERED_YES and NM_METERED_GUESS_YES.
            [1, 3].contains(try $0.readUInt32())
        } note: {
            $0.isMetered = $1
        }
        // By the name that every version has.
        try await follow("net.hadess.PowerProfiles", "/net/hadess/PowerProfiles", "ActiveProfile") {
            try $0.readString() == "power-saver"
        } note: {
            $0.savesPower = $1
        }
    }

    /// Follows a property of a service's object, whose interface is called as the service is.
    private func follow(
        _ name: String, _ path: String, _ property: String,
        _ decode: @escaping @BusActor @Sendable (Message) throws -> Bool,
        note: @escaping @BusActor @Sendable (Savings, Bool) -> Void
    ) async throws {
        let reader = Reader()
        let read: @BusActor @Sendable () -> Void = { [weak self] in
            EventLoop.task {
                let isSo = try? await reader.neighbour?.property(path, name, property, decode: decode)
                guard let self else { return }
                note(self, isSo ?? false)
                self.onChange?()
            }
        }
        let neighbour = Neighbour(name, on: connection) { _ in read() }
        reader.neighbour = neighbour
        neighbours.append(neighbour)
        try await neighbour.follow([.init(rule: Neighbour.changes(of: path, name)) { _ in read() }])
    }

    /// Leads from a signal to whom it is of.
    @BusActor
    private final class Reader {
        weak var neighbour: Neighbour?
    }
}
