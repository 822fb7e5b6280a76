// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import UbiquitousStore

/// The users who have data on this device, for root.
struct Everybody: Sendable {
    struct User: Sendable {
        let uid: UInt32
        let account: AccountDescription
        /// How this device moves the account to a new key; empty if it doesn't.
        let move: String

        /// The user's name, or the uid if there is no name.
        var name: String { LocalUser.name(of: uid) ?? "\(uid)" }
    }

    /// Those whose data can be opened, signed in or not.
    private(set) var users: [User] = []
    /// The names of all others.
    private(set) var unreadable: [String] = []

    /// Reads the users' accounts. Complains of each user whose data can't be opened.
    @BusActor
    init(_ connection: ServiceConnection) async throws {
        for uid in try await connection.manager.users() {
            do {
                let object = connection.account(ofUser: uid)
                let account = try await object.properties()
                let move = account.isSignedIn ? try await object.move() : ""
                users.append(User(uid: uid, account: account, move: move))
            } catch let error as UbiquitousStoreError where error.isOfOneUser {
                let name = LocalUser.name(of: uid) ?? "\(uid)"
                unreadable.append(name)
                Output.complain("The data of \(Output.printableWord(name)) can't be opened: \(error.message)")
            }
        }
    }
}

extension UbiquitousStoreError {
    /// Whether the service answered, and could not open the user's data.
    fileprivate var isOfOneUser: Bool {
        switch code {
        case .serviceUnavailable, .timedOut, .limitsExceeded, .accessDenied: false
        default: true
        }
    }
}
