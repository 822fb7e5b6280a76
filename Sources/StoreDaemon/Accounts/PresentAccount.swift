// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus
internal import Sealing

/// The account that this device is signed in to, as signing in meets it.
///
/// Signing in again at its address never settles a reset, because whoever renews a password may not know of it. And
/// where the account's file can't be read, it only finds the account again.
enum PresentAccount {
    /// It is at another address, or there is none.
    case elsewhere
    /// It is at the address.
    case here(AccountFile)
    /// Its file can't be read, so its address isn't known; its identifier is the database's, or "" if that is new.
    case unreadable(identifier: String)

    @BusActor
    init(_ account: UserAccount, at url: String) {
        do {
            guard let file = try account.saved.read(), file.isAt(url) else {
                self = .elsewhere
                return
            }
            self = .here(file)
        } catch {
            self = .unreadable(identifier: account.accountIdentifier)
        }
    }

    /// The account's file, if it is at the address.
    var file: AccountFile? { if case .here(let file) = self { file } else { nil } }

    /// Whether signing in may create an account.
    /// - Parameter hasPhrase: whether the user has given a recovery phrase: the account may have moved to its key.
    func mayCreate(hasPhrase: Bool) -> Bool {
        switch self {
        case .elsewhere: true
        case .here: hasPhrase
        case .unreadable: false
        }
    }

    /// Throws if the account in the remote must not take the place of this one.
    @BusActor
    func check(_ remote: RemoteAccount, _ held: HeldKey?, hasPhrase: Bool, _ account: UserAccount) throws {
        let keys = account.keys
        switch self {
        case .elsewhere: break
        case .here(let file):
            if let held { try account.checkIsNotFormer(held) }
            if !hasPhrase, !remote.isNamed(file.account) { throw Self.replaced }
        case .unreadable(let identifier):
            let isThis = identifier.isEmpty || remote.isNamed(identifier) || held.map(keys.isStored) == true
            guard isThis else { throw Self.another }
            try keys.checkMayReplace(with: held)
        }
    }

    /// Returns this account's identifier, if it has got another since: with the user's phrase, or with a key that is on
    /// this device, the account in the remote is this one after a move to that key.
    func former(of remote: RemoteAccount) -> String? {
        let identifier =
            switch self {
            case .elsewhere: ""
            case .here(let file): file.account
            case .unreadable(let identifier): identifier
            }
        return identifier.isEmpty || remote.isNamed(identifier) ? nil : identifier
    }

    /// Returns the error of signing in, given that of the remote.
    func failure(_ error: RemoteError, hasPhrase: Bool) -> RemoteError {
        switch (self, error.code) {
        // It is not gone if there is a reason why it isn't found.
        case (.here, .noAccount) where !hasPhrase:
            error.reason == nil ? .accountGone : RemoteError(.unavailable, error.message, reason: error.reason)
        case (.here(let file), .unencrypted) where file.isEncrypted == true && !hasPhrase: .plainInPlace
        case (.unreadable, .noAccount): Self.another
        default: error
        }
    }

    private static let replaced = RemoteError(.reset, "There is another account here than before.")
    private static let another = RemoteError(
        .denied,
        "This is not the account that this device is signed in to, and whose file can't be read. Sign in at its address, "
            + "or sign out first.")
}
