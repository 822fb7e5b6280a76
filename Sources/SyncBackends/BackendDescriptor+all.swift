// SPDX-License-Identifier: Apache-2.0

@_exported public import BackendSupport
internal import Etcd
internal import Folder
internal import RemoteAddress
package import Replication
internal import WebDAV

/// The list of backends. A new one is a target with its files, a kind in `BackendKind`, and a line here.
extension BackendDescriptor {
    /// All backends.
    package static let all = [FolderBackend.descriptor, WebDAVBackend.descriptor, EtcdBackend.descriptor]

    /// Returns the backend for a scheme.
    /// - Parameter scheme: in lower case; empty if the address has none.
    /// - Throws: `RemoteError.unsupported` if there is none.
    package static func find(_ scheme: String) throws(RemoteError) -> BackendDescriptor {
        if let found = all.first(where: { $0.schemes.contains(scheme) }) { return found }
        let examples = all.map(\.kind.example)
        let flaw = scheme.isEmpty ? "The form of the address is unknown" : "There is no backend for \"\(scheme):\""
        throw RemoteError(
            .unsupported,
            "\(flaw); use \(examples.dropLast().joined(separator: ", ")) or \(examples.last ?? "").")
    }
}
