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
            throw Self.flaw("\"\(url.authority)\" is not HOST or HOST:PORT; \(ServerURL.hostRule)")
        }
        let path = try Self.path(url.rest)
        address = HTTPAddress(isSecure: url.isSecure, host: host, port: port, path: path)
    }

    /// Returns a path with everything encoded that has to be. What users have encoded stays as it is.
    private static func path(_ text: Substring) throws(RemoteError) -> String {
        guard !text.contains("?"), !text.contains("#") else {
            throw flaw("it must not contain a query or a fragment; write %3F and %23 in a name")
        }
        var encoded = ""
        for part in text.split(separator: "/") {
            guard let name = PercentCoding.decode(part), name.isPrintable else {
                throw flaw("a % must be followed by two hexadecimal digits, and control characters are not allowed")
            }
            guard name != ".", name != ".." else { throw flaw("its path must not contain . or ..") }
            encoded += "/" + PercentCoding.encode(part, keeping: PercentCoding.partOfPath)
        }
        guard encoded.utf8.count < 2048 else { throw flaw("its path must not be longer than 2047 bytes") }
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
        RemoteError(.unsupported, "This is not a valid WebDAV address: \(clause).")
    }

    /// A warning for users before a password is sent to the server; `nil` if there is none.
    var warning: String? {
        BackendKind.webDAV.warning(isSecure: address.isSecure, hosts: [address.host])
    }
}
