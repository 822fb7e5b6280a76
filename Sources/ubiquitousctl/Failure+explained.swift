// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import StoreBus
internal import UbiquitousStore

extension Failure {
    /// The connection to the service, which is asked for what an error doesn't say.
    @BusActor static var connection: ServiceConnection?

    /// Describes an error, with the reason that systemd or the service knows.
    @BusActor
    static func explained(_ error: any Error) async -> Failure {
        let failure = Failure(error)
        let isUnreachable = failure.outcome == .unreachable
        guard let connection, connection.isOpen else { return isUnreachable ? LocalUser.unknown ?? failure : failure }
        if isUnreachable { return await ServiceUnit.failure() ?? failure }
        // For a program that the service can't identify, no object exists.
        guard (error as? UbiquitousStoreError)?.code == .unknownObject,
            let caller = try? await connection.manager.identify(), caller.engine == "unknown"
        else { return failure }
        return Failure(
            .refused, "The service can't tell what sandbox this program is in, and shows it no data.",
            advice: "Run it outside of the sandbox.")
    }
}
