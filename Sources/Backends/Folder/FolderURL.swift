// SPDX-License-Identifier: Apache-2.0

internal import RemoteAddress
internal import Replication

/// The address of a folder: `folder:///home/ada/Sync`.
struct FolderURL: Equatable {
    /// An absolute path, without a trailing slash.
    let path: String

    init(_ url: String) throws(RemoteError) {
        let scheme = RemoteAddress.scheme(of: url)
        guard scheme == BackendKind.folder.name, scheme.count < url.count else {
            throw .address("a folder's address must begin with folder:///")
        }
        let rest = url.dropFirst(scheme.count + 1)
        guard rest.hasPrefix("///") else {
            throw .address("a folder is on this machine; write three slashes, as in folder:///home/ada/Sync")
        }
        guard !rest.utf8.contains(UInt8(ascii: "?")), !rest.utf8.contains(UInt8(ascii: "#")) else {
            throw .address("a folder's address must not contain a query or a fragment; write %3F and %23 in a name")
        }
        guard let path = PercentCoding.decode(rest.dropFirst(2)) else {
            throw .address("a % must be followed by two hexadecimal digits")
        }
        self.path = try Self.withoutTrailingSlashes(path)
        // The account's folders would lie among those of the system.
        if self.path == "/" { throw .address("a folder is not the root directory; name one in it") }
    }

    /// A path as the user wrote it, without trailing slashes.
    static func withoutTrailingSlashes(_ path: String) throws(RemoteError) -> String {
        guard path.hasPrefix("/"), !path.utf8.contains(0), path.utf8.count < 4096 else {
            throw .address("a path must begin with a slash and must not contain U+0000")
        }
        var path = path[...]
        while path.count > 1, path.last == "/" { path.removeLast() }
        return String(path)
    }
}

extension RemoteError {
    fileprivate static func address(_ clause: String) -> RemoteError {
        RemoteError(.unsupported, "The address can't be used: \(clause).")
    }
}
