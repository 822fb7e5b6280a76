// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import UbiquitousStore

/// The users who have data on this device, for root.
enum Everybody {
    struct User: Sendable {
        let uid: UInt32
        let account: AccountDescription

        /// The user's name, or the uid if there is no name.
        var name: String { LocalUser.name(of: uid) ?? "\(uid)" }
    }

    /// Returns the accounts of all these users, signed in or not.
    @BusActor
    static func accounts(_ connection: ServiceConnection) async throws -> [User] {
        var users: [User] = []
        for uid in try await connection.manager.users() {
            users.append(User(uid: uid, account: try await connection.account(ofUser: uid).properties()))
        }
        return users
    }
}
