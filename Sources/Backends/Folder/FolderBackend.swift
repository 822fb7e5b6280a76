// SPDX-License-Identifier: Apache-2.0

package import BackendSupport
internal import Blobs
internal import RemoteAddress
package import Replication

/// The backend for `folder:///…`: a directory that other software replicates between devices, or that all of them
/// mount.
package enum FolderBackend {
    /// The backend's descriptor.
    package static let descriptor = BackendDescriptor(.folder) {
        site throws(RemoteError) in
        BlobBackend(
            storage: PatientStorage(FolderStorage(try FolderURL(site.url), access: site.folders)),
            environment: .system, protection: site.protection)
    } check: {
        await FolderBackend.check(url: $0.url, access: $0.folders)
    }

    /// Makes a backend for an address. It accesses the folder only when opened.
    /// - Parameters:
    ///   - url: the address.
    ///   - access: the folders that may be used.
    ///   - environment: the clock and random numbers.
    /// - Throws: `RemoteError.unsupported` if it is not a folder's address.
    package static func make(
        url: String,
        access: FolderAccess,
        environment: Environment = .system
    ) throws(RemoteError) -> some RemoteBackend {
        BlobBackend(storage: FolderStorage(try FolderURL(url), access: access), environment: environment)
    }

    /// Tests an address, and leaves nothing behind.
    package static func check(
        url: String,
        access: FolderAccess,
        environment: Environment = .system
    ) async -> [BackendCheck] {
        await BackendCheck.steps { () throws(RemoteError) in
            PatientStorage(FolderStorage(try FolderURL(url), access: access, watch: nil))
        } _: { storage in
            var probe = BlobProbe(of: storage, environment: environment)
            await probe.run()
            return probe.checks
        }
    }
}
