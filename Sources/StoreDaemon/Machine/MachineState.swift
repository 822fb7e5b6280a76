// SPDX-License-Identifier: Apache-2.0

// What determines the pace of sync besides the settings: whether users are present, and what the machine has to save.
// It is followed while an account is signed in. Without the services that report it, it is unknown.

internal import Logging
internal import Replication
internal import SDBus
internal import SyncEngine

/// The state of the machine, as far as it matters for sync.
@BusActor
final class MachineState {
    private let service: ServiceContext
    private let users: @BusActor () -> [User]
    private var logins: Logins?
    private var savings: Savings?

    /// - Parameter users: returns the users whose data is open.
    init(in service: ServiceContext, of users: @escaping @BusActor () -> [User]) {
        self.service = service
        self.users = users
    }

    /// Begins to follow the machine's state, or stops.
    func follow(_ isNeeded: Bool) {
        guard isNeeded != (logins != nil) else { return }
        (logins, savings) = (nil, nil)
        guard isNeeded else { return }
        do {
            let connection = try systemBus
            (logins, savings) = (Logins(on: connection), Savings(on: connection))
        } catch {
            return service.logger.debug("Whether users are at the machine is unknown: \(error)")
        }
        logins?.onChange = { [weak self] in self?.tell() }
        logins?.onWaking = { [weak self] in self?.wake() }
        savings?.onChange = { [weak self] in self?.tell() }
        EventLoop.task { [logins, savings, logger = service.logger] in
            do {
                try await logins?.start()
                try await savings?.start()
            } catch {
                logger.debug("Logins, and the wish to save power or data, can't be followed: \(error)")
            }
        }
    }

    /// The bus of those services: the system bus, or the private bus that the service is on, as in tests.
    private var systemBus: BusConnection {
        get throws {
            if case .session = service.configuration.bus {
                return try BusConnection.open(.system, description: "ubiquitous-stored (system)")
            }
            return service.connection
        }
    }

    /// Returns the circumstances of a user's account.
    func circumstances(of uid: UInt32) -> SyncCircumstances {
        var circumstances = SyncCircumstances()
        circumstances.presence = logins?.presence(of: uid) ?? .unknown
        circumstances.isMetered = savings?.isMetered ?? false
        circumstances.savesPower = savings?.savesPower ?? false
        return circumstances
    }

    private func tell() {
        for user in users() { user.account.sync.circumstances = circumstances(of: user.uid) }
    }

    private func wake() {
        for user in users() { user.account.sync.noteWaking() }
    }
}
