// SPDX-License-Identifier: Apache-2.0

// Notifies the user of problems that remain until the user acts. Ends when there is no account to watch.

internal import EventLoop
internal import GLibLoop
internal import Glibc
internal import SDBus

@BusActor
private enum Program {
    static var watch: Watch?
    static var bus: BusConnection?

    /// - Returns: the exit status; `nil` to keep running.
    static func begin() async throws -> Int32? {
        let session = try BusConnection.open(.session, description: "notifications")
        do { try await session.names.request("org.example.UbiquitousStore.Notifier") } catch {
            // Another process watches already.
            return 0
        }
        session.onDisconnect = { EventLoop.shared.exit(0) }
        bus = session
        let address = BusAddress(environmentVariable("UBIQUITOUS_STORE_BUS") ?? "system")
        let connection = try BusConnection.open(address, description: "notifications")
        connection.onDisconnect = { EventLoop.shared.exit(0) }
        let watch = Watch(try await Service(connection), try await Desktop(session), NotifiedFile(environmentVariable))
        self.watch = watch
        watch.begin()
        return nil
    }
}

installTranslations()
exit(EventLoop.runOnThisThread { try await Program.begin() })
