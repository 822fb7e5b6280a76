// SPDX-License-Identifier: Apache-2.0

public import Replication

/// Where an account is and how to get in: what a backend is made from.
public struct BackendSite: Sendable {
    /// The address, without secrets.
    public let url: String
    /// What a server asks for.
    public let credentials: ServerCredentials
    /// The folders that the account's owner may use.
    public let folders: FolderAccess

    /// A site of its parts.
    public init(url: String, credentials: ServerCredentials, folders: FolderAccess) {
        (self.url, self.credentials, self.folders) = (url, credentials, folders)
    }
}

/// A kind of remote: what its addresses begin with, and how a backend is made for one. A new kind is a folder with its
/// files and a line in ``all``.
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

    /// All that there are.
    public static let all = [FolderBackend.descriptor, WebDAVBackend.descriptor, EtcdBackend.descriptor]

    /// The one for a scheme.
    /// - Parameter scheme: in lower case; empty if the address has none.
    /// - Throws: `RemoteError.unsupported` if there is none.
    public static func find(_ scheme: String) throws(RemoteError) -> BackendDescriptor {
        if let found = all.first(where: { $0.schemes.contains(scheme) }) { return found }
        let examples = all.map(\.example)
        let flaw = scheme.isEmpty ? "the address is of no known form" : "there is no backend for \"\(scheme):\""
        throw RemoteError(
            .unsupported,
            "\(flaw); use \(examples.dropLast().joined(separator: ", ")) or \(examples.last ?? "")")
    }
}
