// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import Replication
internal import SDBus
internal import Sealing
internal import SyncEngine

/// The remotes that a user's account can be in, under the administrator's rules.
@BusActor
struct AccountRemotes {
    let uid: UInt32
    /// The user's name; `nil` if it isn't known.
    let name: String?
    let service: ServiceContext
    /// Called with the microseconds of the bus thread that a backend has taken, once they are many.
    let noteBusy: @BusActor @Sendable (UInt64) -> Void

    private var configuration: Configuration { service.configuration }

    /// The URL of the account that the administrator offers to this user; `nil` if there is none.
    var defaultAddress: String? { configuration.defaultAccount?.address(user: name, uid: uid) }

    /// Makes a backend that logs its steps.
    /// - Throws: why there can't be one, as if the address's scheme isn't allowed or the account can't be encrypted.
    func makeBackend(
        _ url: String, _ credentials: BackendCredentials, _ protection: Protection
    ) throws(RemoteError) -> LoggingBackend {
        var request = request(url, credentials)
        request.protection = protection
        let backend = try configuration.makeBackend(request)
        guard !protection.isWanted || backend is any KeyHolding else {
            throw RemoteError(.unsupported, "An account at this kind of address can't be encrypted.")
        }
        let isRefused = configuration.requiresEncryption && !protection.isWanted
        return LoggingBackend(
            isRefused ? EncryptedOnlyBackend(backend) : backend, of: UserName.text(name, uid)
        ) { [service] in service.logger }
    }

    private func request(_ url: String, _ credentials: BackendCredentials) -> BackendRequest {
        var credentials = credentials
        if credentials.certificateAuthority == nil, let address = defaultAddress, AccountFile.isServer(of: url, address)
        {
            credentials.certificateAuthority = configuration.defaultAuthority
        }
        var request = BackendRequest(
            url: url, uid: uid, mode: configuration.mode, folderRoots: configuration.folderRoots,
            credentials: credentials)
        request.stateDirectory = configuration.stateDirectory
        request.whenBusy = noteBusy
        return request
    }

    // MARK: Testing

    /// Returns the work that tests a remote step by step.
    /// - Parameters:
    ///   - protection: what is known of the encryption of the account there.
    ///   - createsUnencrypted: whether the user wants an unencrypted account if there is none.
    func check(
        _ url: String, _ credentials: BackendCredentials, _ protection: Protection,
        creatingUnencrypted createsUnencrypted: Bool
    ) -> @Sendable () async throws(RemoteError) -> [BackendCheck] {
        let (request, check) = (request(url, credentials), configuration.checkBackend)
        let needsKey = protection.isWanted || configuration.requiresEncryption
        let encryption =
            needsKey
            ? EncryptionCheck(creatingUnencrypted: createsUnencrypted) { () throws(RemoteError) in
                try makeBackend(url, credentials, protection)
            } : nil
        return { () async throws(RemoteError) in
            let steps = try await check(request)
            guard let encryption, steps.allSatisfy({ $0.isPassed }) else { return steps }
            return steps + (await encryption.steps())
        }
    }
}
