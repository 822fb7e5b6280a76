// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import HTTPClient
internal import RemoteAddress
internal import Replication

/// The address of a folder on a WebDAV server: `webdavs://cloud.example.org/remote.php/dav/files/ada/Sync`.
struct WebDAVURL: Equatable {
    /// The folder's address, without a slash at its end unless it is the server's root.
    let address: HTTPAddress

    init(_ url: String) throws(RemoteError) {
        let url = try ServerURL(url, of: .webDAV, flaw: Self.flaw)
        guard let (host, port) = HTTPAddress.split(url.authority) else {
            throw Self.flaw("\"\(url.authority)\" is no HOST or HOST:PORT; \(ServerURL.hostRule)")
        }
        let path = try Self.path(url.rest)
        address = HTTPAddress(isSecure: url.isSecure, host: host, port: port, path: path)
    }

    /// Returns a path with everything encoded that has to be. What users have encoded stays as it is.
    private static func path(_ text: Substring) throws(RemoteError) -> String {
        guard !text.contains("?"), !text.contains("#") else {
            throw flaw("it has no query and no fragment; write %3F and %23 in a name")
        }
        var encoded = ""
        for part in text.split(separator: "/") {
            guard let name = PercentCoding.decode(part), name.isPrintable else {
                throw flaw("a % in it is followed by two digits, and it has no control characters")
            }
            guard name != ".", name != ".." else { throw flaw("it has no . and .. in its path") }
            encoded += "/" + PercentCoding.encode(part, keeping: PercentCoding.partOfPath)
        }
        guard encoded.utf8.count < 2048 else { throw flaw("it is not that long") }
        return encoded.isEmpty ? "/" : encoded
    }

    /// The folder above; `nil` for the server's root.
    var above: HTTPAddress? {
        guard let slash = address.path.lastIndex(of: "/"), address.path != "/" else { return nil }
        var above = address
        above.path = String(address.path[...slash])
        return above
    }

    private static func flaw(_ clause: String) -> RemoteError {
        RemoteError(.unsupported, "This is no WebDAV address: \(clause).")
    }

    /// A warning for users before a password is sent to the server; `nil` if there is none.
    var warning: String? {
        BackendKind.webDAV.warning(isSecure: address.isSecure, hosts: [address.host])
    }
}
