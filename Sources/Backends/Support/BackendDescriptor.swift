// SPDX-License-Identifier: Apache-2.0

public import Replication
package import Sealing

/// Where an account is and how to get in: what a backend is made from.
public struct BackendSite: Sendable {
    /// The address, without secrets.
    public let url: String
    /// What a server asks for.
    public let credentials: ServerCredentials
    /// The folders that the account's owner may use.
    public let folders: FolderAccess
    /// What is known of the account's encryption. A backend that can't encrypt refuses anything but ``Protection/none``.
    package var protection = Protection.none
    /// The account is encrypted, or is to be.
    package var isEncrypted: Bool { protection.isWanted }

    /// A site of its parts.
    public init(url: String, credentials: ServerCredentials, folders: FolderAccess) {
        (self.url, self.credentials, self.folders) = (url, credentials, folders)
    }
}

/// A kind of remote: what its addresses begin with, and how a backend is made for one.
public struct BackendDescriptor: Sendable {
    /// What addresses begin with, in lower case; the first one is the one to recommend.
    public let schemes: [String]
    /// How an address is written, for people.
    public let example: String
    /// Makes a backend. Nothing is asked before it is opened.
    public let make: @Sendable (BackendSite) throws(RemoteError) -> any RemoteBackend
    /// Tries an address out, and leaves nothing behind.
    public let check: @Sendable (BackendSite) async -> [BackendCheck]

    /// A descriptor of its parts.
    public init(
        schemes: [String], example: String,
        make: @escaping @Sendable (BackendSite) throws(RemoteError) -> any RemoteBackend,
        check: @escaping @Sendable (BackendSite) async -> [BackendCheck]
    ) {
        (self.schemes, self.example, self.make, self.check) = (schemes, example, make, check)
    }
}
