// SPDX-License-Identifier: Apache-2.0

package import RemoteAddress
package import Replication
package import Sealing

/// What a backend is made from: an account's address, and how to access it.
package struct BackendSite: Sendable {
    /// The address, without secrets.
    package let url: String
    /// The credentials for a server.
    package let credentials: ServerCredentials
    /// The folders that the account's user may use.
    package let folders: FolderAccess
    /// What is known of the account's encryption. A backend that can't encrypt accepts only ``Protection/none``.
    package var protection = Protection.none
    /// Whether the account is, or will be, encrypted.
    package var isEncrypted: Bool { protection.isWanted }

    /// Makes a site from its parts.
    package init(url: String, credentials: ServerCredentials, folders: FolderAccess) {
        (self.url, self.credentials, self.folders) = (url, credentials, folders)
    }
}

/// Makes backends for a kind of remote.
package struct BackendDescriptor: Sendable {
    /// The kind, with the form of its addresses and the credentials that it needs.
    package let kind: BackendKind
    /// The schemes of its addresses, in lower case.
    package var schemes: [String] { kind.schemes }
    /// Makes a backend, which accesses the remote only once it is opened.
    package let make: @Sendable (BackendSite) throws(RemoteError) -> any RemoteBackend
    /// Tests an address, and leaves nothing behind.
    package let check: @Sendable (BackendSite) async -> [BackendCheck]

    /// How long a server may take for a whole check. Later requests, which remove what was written, get a second each.
    package static let checkTime = Duration.seconds(45)

    /// Makes a descriptor from its parts.
    package init(
        _ kind: BackendKind,
        make: @escaping @Sendable (BackendSite) throws(RemoteError) -> any RemoteBackend,
        check: @escaping @Sendable (BackendSite) async -> [BackendCheck]
    ) {
        (self.kind, self.make, self.check) = (kind, make, check)
    }
}
