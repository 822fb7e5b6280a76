// SPDX-License-Identifier: Apache-2.0

public import Replication

/// A storage of blobs under names: a folder, a WebDAV collection, a bucket.
///
/// A name is `folder/name` or `name`. The backend trusts nothing but the content of blobs: a listing may be partial or
/// stale, and a blob torn, outdated or foreign.
///
/// Errors have the codes that the head of RemoteBackend.swift explains: `unavailable` if the remote can't be reached
/// now, `unauthorized` or `denied` if it may not be used, `full` if it has no space. A write that has failed may have
/// been carried out all the same.
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
    /// - Throws: `RemoteError` if the folder can't be listed. An empty list may make an account seem gone.
    func list(_ folder: String) async throws(RemoteError) -> [BlobListing]

    /// Reads a blob.
    /// - Parameters:
    ///   - limit: the maximum length of a blob of this kind, in bytes.
    ///   - version: the version that the caller has read already; `nil` to read any.
    /// - Throws: `RemoteError` if the remote doesn't answer. A blob that is too long or can't be read is
    ///   ``BlobContent/unreadable(_:)``, so that others can still be read.
    func get(_ name: String, limit: Int, unless version: String?) async throws(RemoteError) -> BlobContent

    /// Writes a blob, or replaces it as a whole. When this returns, the blob is as durable as the remote can make it.
    /// - Throws: `RemoteError` with the code `full` if there is no space for it.
    func put(_ name: String, _ bytes: [UInt8]) async throws(RemoteError)

    /// Writes a blob if there is none of this name. Some servers can't promise that, so the callers' names are random
    /// or stand for one content.
    /// - Throws: `RemoteError` with the code `denied` if there is such a blob already. If it has the same bytes, the
    ///   call may succeed instead.
    func create(_ name: String, _ bytes: [UInt8]) async throws(RemoteError)

    /// Removes a blob, if it exists.
    /// - Throws: `RemoteError` if it may still be there.
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
