// SPDX-License-Identifier: Apache-2.0

package import PlaceAddress
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

/// How a backend is made for a kind of remote.
public struct BackendDescriptor: Sendable {
    /// What its addresses look like, and what is asked for.
    package let kind: PlaceKind
    /// What its addresses begin with, in lower case.
    public var schemes: [String] { kind.schemes }
    /// Makes a backend. Nothing is asked before it is opened.
    public let make: @Sendable (BackendSite) throws(RemoteError) -> any RemoteBackend
    /// Tries an address out, and leaves nothing behind.
    public let check: @Sendable (BackendSite) async -> [BackendCheck]

    /// How long a server may take for a whole check. What is asked later gets a second each, to remove what was written.
    package static let checkTime = Duration.seconds(45)

    /// A descriptor of its parts.
    package init(
        _ kind: PlaceKind,
        make: @escaping @Sendable (BackendSite) throws(RemoteError) -> any RemoteBackend,
        check: @escaping @Sendable (BackendSite) async -> [BackendCheck]
    ) {
        (self.kind, self.make, self.check) = (kind, make, check)
    }
}
