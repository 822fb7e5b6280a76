// SPDX-License-Identifier: Apache-2.0

public import Replication

/// A storage of blobs under names: a folder, a WebDAV collection, a bucket.
///
/// A name is `folder/name` or `name`. The backend trusts nothing but the content of blobs: a listing may be partial or
/// stale, and a blob torn, outdated or foreign.
public protocol BlobStorage: Sendable {
    /// What the storage costs, and whether it reports changes.
    var traits: BackendTraits { get }

    /// Checks again that the remote exists and may be used. Called first, and before each pull, push or collection.
    /// - Parameter createsFolder: whether to create what the storage needs before the first account, such as a directory.
    /// - Returns: warnings for the user, as sentences.
    /// - Throws: `RemoteError.noAccount` if that was not created yet.
    @discardableResult
    func check(creatingFolder createsFolder: Bool) async throws(RemoteError) -> [String]

    /// Lists the names in a folder, in any order; none if the folder is missing. The empty string is the remote itself.
    func list(_ folder: String) async throws(RemoteError) -> [BlobListing]

    /// Reads a blob.
    /// - Parameters:
    ///   - limit: the maximum length of a blob of this kind, in bytes.
    ///   - version: the version that the caller has read already; `nil` to read any.
    func get(_ name: String, limit: Int, unless version: String?) async throws(RemoteError) -> BlobContent

    /// Writes a blob, or replaces it as a whole. When this returns, the blob is as durable as the remote can make it.
    func put(_ name: String, _ bytes: [UInt8]) async throws(RemoteError)

    /// Writes a blob, and never replaces one.
    func create(_ name: String, _ bytes: [UInt8]) async throws(RemoteError)

    /// Removes a blob, if it exists.
    func delete(_ name: String) async throws(RemoteError)

    /// Hints that another device has changed something. The stream ends with ``close()``.
    func hints() -> AsyncStream<Void>

    /// Ends the hints. Doesn't wait for what is under way.
    func close()
}

/// A name in a listing.
public struct BlobListing: Equatable, Sendable {
    /// The name in its folder.
    public let name: String
    /// The blob's version, if the storage has versions. A new one is a reason to read it again; the same proves little.
    public let version: String?

    /// Makes a listing from its parts.
    public init(name: String, version: String? = nil) {
        self.name = name
        self.version = version
    }
}

/// The result of reading a blob.
public enum BlobContent: Equatable, Sendable {
    /// There is no blob of this name.
    case absent
    /// The blob still has the version that the caller has read.
    case unchanged
    /// The blob, with its version if the storage has versions.
    case content([UInt8], version: String?)
    /// Something that can't be a blob of the account, or can't be read. A clause says why, to follow the name.
    case unreadable(String)
}
