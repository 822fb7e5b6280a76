// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import HTTPClient
internal import RemoteAddress
internal import Replication

/// The address of a remote in an etcd cluster: `etcds://one.example.org,two.example.org:2380/settings/ada`.
struct EtcdURL: Equatable {
    /// The members, in the order in which they are asked; without paths.
    let members: [HTTPAddress]
    /// The bytes that all keys begin with, without the slash that follows.
    let prefix: [UInt8]

    private static let usualPort = 2379
    private static let mostMembers = 16

    init(_ url: String) throws(RemoteError) {
        let url = try ServerURL(url, of: .etcd, flaw: Self.flaw)
        members = try Self.members(url.authority, url.isSecure)
        prefix = try Self.prefix(url.rest)
    }

    private static func members(_ authority: Substring, _ isSecure: Bool) throws(RemoteError) -> [HTTPAddress] {
        var members: [HTTPAddress] = []
        for member in authority.split(separator: ",", omittingEmptySubsequences: false) {
            guard let (host, port) = HTTPAddress.split(member) else {
                throw flaw(
                    "\"\(member)\" is not HOST or HOST:PORT; \(ServerURL.hostRule), and commas are between members, without "
                        + "spaces")
            }
            let address = HTTPAddress(isSecure: isSecure, host: host, port: port ?? usualPort, path: "/")
            if members.contains(address) { continue }
            guard members.count < mostMembers else { throw flaw("it must not name more than \(mostMembers) members") }
            members.append(address)
        }
        return members
    }

    /// Decodes the prefix. Keys are bytes, which users write as a URL's path.
    private static func prefix(_ text: Substring) throws(RemoteError) -> [UInt8] {
        guard !text.contains("?"), !text.contains("#") else {
            throw flaw("it must not contain a query or a fragment; write %3F and %23 in a prefix")
        }
        var prefix = text.dropFirst()
        while prefix.hasSuffix("/") { prefix.removeLast() }
        guard !prefix.isEmpty else {
            throw flaw("it must say where in the cluster the account is, as in etcds://HOST/settings/ada")
        }
        guard let name = PercentCoding.decode(prefix), name.isPrintable else {
            throw flaw("a % must be followed by two hexadecimal digits, and control characters are not allowed")
        }
        guard name.utf8.count <= 512 else { throw flaw("its prefix must not be longer than 512 bytes") }
        return Array(name.utf8)
    }

    private static func flaw(_ clause: String) -> RemoteError {
        RemoteError(.unsupported, "This is not a valid etcd address: \(clause).")
    }

    /// The prefix as text, for error messages.
    var place: String { String(decoding: prefix, as: UTF8.self) }

    /// A warning for users before a password is sent to the cluster; `nil` if there is none.
    var warning: String? {
        BackendKind.etcd.warning(isSecure: members.allSatisfy(\.isSecure), hosts: members.map(\.host))
    }
}
