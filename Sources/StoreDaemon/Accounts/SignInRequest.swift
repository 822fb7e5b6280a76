// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus
internal import StoreBus

/// What a caller wants to sign in to, and how. Signing in does it, and a check can try it.
struct SignInRequest {
    let url: String
    private(set) var credentials: BackendCredentials
    /// The name of this device from then on; `nil` to keep it.
    let deviceName: String?
    /// Whether to create an account if the remote has none.
    let createsAccount: Bool
    /// Whether this device's values become part of a new account.
    let bringsValues: Bool
    /// Whether missing credentials are taken from the account that is signed in.
    let isRenewal: Bool
    let encryption: EncryptionOptions

    /// The options of `SignIn` and `CheckBackend` that describe a request.
    static let options = [
        "user": "s", "password": "s", "token": "s", "ca-pem": "ay", "device-name": "s", "create": "b",
        "bring-values": "b", "renew": "b", "encrypt": "b", "recovery-phrase": "s", "reject-others": "b",
        "keep-last-key": "b",
    ]

    /// - Parameter creates: whether an account is created if the options don't say it.
    init(_ url: String, _ options: [String: Option], createsByDefault creates: (_ isRenewal: Bool) -> Bool) throws {
        self.url = url
        credentials = BackendCredentials(options)
        isRenewal = options.boolean("renew", default: false)
        encryption = try EncryptionOptions(
            encrypts: options.boolean("encrypt", default: false), phrase: options.string("recovery-phrase"),
            rejectsOthers: options.boolean("reject-others", default: false))
        deviceName = options.string("device-name")
        createsAccount = options.boolean("create", default: creates(isRenewal))
        bringsValues = options.boolean("bring-values", default: false)
    }

    /// Throws if signing in can't use something in it.
    func check() throws {
        try credentials.check()
        if let deviceName { try RemoteDevice.check(name: deviceName) }
    }

    /// Takes what a renewal lacks from the account that is signed in.
    @BusActor
    mutating func complete(from saved: SavedAccount) throws {
        guard isRenewal else { return }
        let file = try saved.signedIn()
        // Secrets are sent only to the address that they were given for.
        guard file.isAt(url) else {
            throw BusError.invalidArguments("\"renew\" is for the address of the account that is signed in.")
        }
        credentials = credentials.completed(by: file.credentials)
    }

    /// Whether the user has given a recovery phrase.
    var hasPhrase: Bool { encryption.phrase != nil }

    /// Takes the authority of a server's certificate from the account that is signed in, if it is on the same server
    /// and the request names none. It is no secret, and is the same for the whole server.
    mutating func takeAuthority(from file: AccountFile) {
        guard credentials.certificateAuthority == nil, file.isServer(of: url) else { return }
        credentials.certificateAuthority = file.credentials.certificateAuthority
    }
}
