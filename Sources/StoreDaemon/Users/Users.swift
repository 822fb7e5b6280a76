// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import SDBus
internal import StoreEngine
internal import SyncEngine

/// The users whose data the service has open.
@BusActor
final class Users {
    private unowned let daemon: Daemon
    private var open: [UInt32: User] = [:]

    init(daemon: Daemon) {
        self.daemon = daemon
    }

    /// A user's data, opened if it isn't.
    func user(_ uid: UInt32) throws -> User {
        if let user = open[uid] { return user }
        let user = try User(uid, daemon: daemon)
        open[uid] = user
        return user
    }

    /// The users that have data, whether it is open or not.
    var known: [UInt32] { UserDirectory.users(in: daemon.configuration.stateDirectory) }

    var all: [User] { Array(open.values) }

    /// Goes on with the accounts that are signed in.
    func resumeAccounts() {
        for uid in known {
            guard AccountFile.exists(in: UserDirectory(of: uid, in: daemon.configuration.stateDirectory).path) else {
                continue
            }
            do { _ = try user(uid) } catch {
                daemon.logger.error("The data of the user \(uid) can't be opened: \(error)")
            }
        }
    }

    /// Whether an account is signed in: then the service has something to do by itself.
    var hasAccount: Bool { open.values.contains { $0.account.sync.isSignedIn } }

    func close() {
        for user in open.values { user.close() }
        open = [:]
    }
}
