// SPDX-License-Identifier: Apache-2.0

internal import Replication

/// The backend of an unencrypted account on a machine whose administrator requires encryption. It creates and joins no
/// account and writes nothing. It can read the account, so that a move to a key can keep its values.
final class EncryptedOnlyBackend: RemoteBackend {
    private let backend: any RemoteBackend

    init(_ backend: any RemoteBackend) { self.backend = backend }

    var traits: BackendTraits { backend.traits }

    func open(creatingAccount createsAccount: Bool) async throws(RemoteError) -> RemoteAccount {
        do throws(RemoteError) { _ = try await backend.open(creatingAccount: false) } catch {
            throw createsAccount && error.code == .noAccount ? Self.noNewAccount : error
        }
        throw Self.notEncrypted
    }

    func restore(_ account: String) async throws(RemoteError) -> RemoteAccount { throw Self.notEncrypted }

    func pull(
        after cursor: [UInt8]?, as origin: Origin, published count: UInt64
    ) async throws(RemoteError) -> any RemotePull {
        try await backend.pull(after: cursor, as: origin, published: count)
    }

    func push(_ publication: Publication) async throws(RemoteError) -> any RemotePush { throw Self.notEncrypted }

    func doubtPublication() async { await backend.doubtPublication() }

    func collectGarbage(_ request: GarbageCollection) async throws(RemoteError) { throw Self.notEncrypted }

    func hints() -> AsyncStream<Void> { backend.hints() }

    func close() async { await backend.close() }

    /// Why an unencrypted account is not used.
    static let notEncrypted = RemoteError(
        .denied,
        "The account is not encrypted, and this machine's administrator requires that. Encrypt it with \"ubiquitousctl "
            + "account encrypt\" on a device that is signed in to it.")
    private static let noNewAccount = RemoteError(
        .denied,
        "There is no account here yet, and this machine's administrator requires a new one to be encrypted.")
}
