// SPDX-License-Identifier: Apache-2.0

public import Replication

/// What stores blobs under names: a folder, a WebDAV collection, a bucket.
///
/// A name is `folder/name` or `name`. Of everything a blob is trusted for nothing but its content: a listing may be
/// partial or stale, a blob torn, an older one, or somebody else's.
public protocol BlobStorage: Sendable {
    /// What the storage costs, and whether it tells of changes.
    var traits: BackendTraits { get }

    /// Looks anew whether the place is there and may be used. Comes before everything else, and before each pass.
    /// - Parameter makesPlace: makes what the storage has to make before somebody's first account.
    /// - Returns: what a person should know though it works.
    /// - Throws: `RemoteError.noAccount` if that was not made yet.
    @discardableResult
    func check(makingPlace makesPlace: Bool) async throws(RemoteError) -> [String]

    /// The names in a folder, in no order; none if the folder is not there. The empty string is the place itself.
    func list(_ folder: String) async throws(RemoteError) -> [BlobListing]

    /// Reads a blob.
    /// - Parameters:
    ///   - limit: the most bytes that a blob of this kind can have.
    ///   - version: which the caller has read already.
    func get(_ name: String, limit: Int, unless version: String?) async throws(RemoteError) -> BlobContent

    /// Writes a blob, or replaces it as a whole. When it returns, the blob is as safe as the place can make it.
    func put(_ name: String, _ bytes: [UInt8]) async throws(RemoteError)

    /// Writes a blob that never replaces one.
    func create(_ name: String, _ bytes: [UInt8]) async throws(RemoteError)

    /// Removes a blob, if it is there.
    func delete(_ name: String) async throws(RemoteError)

    /// Says "look now" when somebody else changed something; ends with ``close()``.
    func hints() -> AsyncStream<Void>

    /// Ends the hints. Does not wait for what is under way.
    func close()
}

/// A name that is there.
public struct BlobListing: Equatable, Sendable {
    /// The name in its folder.
    public let name: String
    /// Another one means "read again"; the same one means little.
    public let version: String?

    /// A listing of its parts.
    public init(name: String, version: String? = nil) {
        self.name = name
        self.version = version
    }
}

/// What is under a name.
public enum BlobContent: Equatable, Sendable {
    /// Nothing.
    case absent
    /// Still the version that the caller has.
    case unchanged
    /// A blob, with its version where the storage has such a thing.
    case content([UInt8], version: String?)
    /// Something that is no blob of ours, or can't be read; a clause that follows its name.
    case unreadable(String)
}
