// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Logging
internal import Replication
internal import SDBus
internal import StoreEngine
internal import SyncEngine

/// The users whose data the service has open.
@BusActor
final class Users {
    private unowned let daemon: Daemon
    private var open: [UInt32: User] = [:]
    private var accountsFile = FileStamp("/etc/passwd")

    init(daemon: Daemon) {
        self.daemon = daemon
    }

    /// A user's data, if it is open.
    func openUser(_ uid: UInt32) -> User? { open[uid] }

    /// A user's data, opened if it isn't.
    func user(_ uid: UInt32) throws -> User {
        if let user = open[uid] { return user }
        let user = try User(uid, daemon: daemon)
        closeIdle()
        open[uid] = user
        return user
    }

    /// So many idle users stay open, since a user who was called once is often called again soon.
    private static let mostIdle = 8

    /// Closes the data of users who have gone, once there are several of them.
    func closeIdle() {
        let idle = open.values.filter { $0.isIdle && !daemon.clients.isPresent($0.uid) }
        if idle.count <= Self.mostIdle { return }
        daemon.writes.commit()
        for user in idle { close(user) }
    }

    /// The open users whose uid was given to another user, if the machine's users have changed since the last check.
    ///
    /// Users from a directory service are checked when their data is opened.
    func findFormer() -> [User] {
        let stamp = FileStamp("/etc/passwd")
        if stamp == accountsFile { return [] }
        accountsFile = stamp
        return open.values.filter(\.directory.isSomebodyElses)
    }

    /// Closes a user's data, which the next call opens anew.
    func close(_ user: User) {
        user.close()
        open[user.uid] = nil
    }

    /// The users that have data, whether it is open or not.
    var known: [UInt32] { UserDirectory.users(in: daemon.configuration.stateDirectory) }

    var all: [User] { Array(open.values) }

    /// Goes on with the accounts that are signed in.
    func resumeAccounts() {
        for uid in known {
            let directory = UserDirectory(of: uid, in: daemon.configuration.stateDirectory).path
            do {
                try AccountFile.removeRemains(in: directory)
                if AccountFile.exists(in: directory) { try user(uid).rest() }
            } catch {
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
