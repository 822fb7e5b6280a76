// SPDX-License-Identifier: Apache-2.0

public import BackendSupport
internal import Blobs
public import Replication

/// The backend for `folder:///…`: a directory that something else carries between devices, or that they all mount.
public enum FolderBackend {
    /// What a folder's address begins with.
    public static let scheme = "folder"

    /// The kind of remote that it is.
    public static let descriptor = BackendDescriptor(schemes: [FolderBackend.scheme], example: "folder:///PATH") {
        site throws(RemoteError) in
        try FolderBackend.make(url: site.url, access: site.folders)
    } check: {
        await FolderBackend.check(url: $0.url, access: $0.folders)
    }

    /// A backend for an address. Nothing is looked at before it is opened.
    /// - Parameters:
    ///   - url: the address.
    ///   - access: whose folders may be used.
    ///   - environment: the time, and random identifiers.
    /// - Throws: `RemoteError.unsupported` for an address that is none of a folder.
    public static func make(
        url: String,
        access: FolderAccess,
        environment: Environment = .system
    ) throws(RemoteError) -> some RemoteBackend {
        BlobBackend(storage: FolderStorage(try FolderURL(url), access: access), environment: environment)
    }

    /// Tries an address out, and leaves nothing behind.
    public static func check(
        url: String,
        access: FolderAccess,
        environment: Environment = .system
    ) async -> [BackendCheck] {
        let address: FolderURL
        do { address = try FolderURL(url) } catch {
            return [BackendCheck(step: "address", isPassed: false, detail: error.message)]
        }
        var probe = BlobProbe(
            of: FolderStorage(address, access: access, watches: false),
            environment: environment
        )
        await probe.run()
        return [BackendCheck(step: "address", isPassed: true)] + probe.checks
    }
}
