// SPDX-License-Identifier: Apache-2.0

internal import Glibc
package import HTTPClient
internal import Replication

/// Looks up servers' names with getaddrinfo(3), which can take half a minute and can't be ended. A lookup keeps its
/// thread until it has really ended. All users have 16 of these threads together, and each of them two.
enum NameLookups {
    private static let pool = WorkPool(threads: 16, perOwner: 2)

    /// Returns what looks up names for a user.
    static func of(_ owner: UInt32) -> @Sendable (HTTPLookup) -> Void {
        { lookup in
            WorkThread(pool, owner: owner).run {
                // It may have waited for its turn for longer than anybody waits for it.
                if lookup.isWanted { lookup.end(addresses(of: lookup.host)) }
            }
        }
    }

    /// `AI_IDN`, which the module of the C library lacks: names that are not ASCII are looked up in their encoded form.
    private static let encoding: Int32 = 0x40
    /// More addresses than a server has.
    private static let most = 16

    private static func addresses(of host: String) -> [String]? {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = encoding
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, nil, &hints, &list) == 0 else { return nil }
        defer { freeaddrinfo(list) }
        var addresses: [String] = []
        var next = list
        while let entry = next?.pointee, addresses.count < most {
            next = entry.ai_next
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            let length = socklen_t(text.count)
            guard getnameinfo(entry.ai_addr, entry.ai_addrlen, &text, length, nil, 0, NI_NUMERICHOST) == 0 else {
                continue
            }
            let address = text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } } ?? ""
            if !address.contains("%") { addresses.append(address) }
        }
        return addresses.isEmpty ? nil : addresses
    }
}

extension HTTPOptions {
    /// Makes the options of a client for a server with a user's credentials.
    package init(_ credentials: HTTPCredentials = .none, for server: ServerCredentials) {
        self.init(credentials: credentials, authority: server.authority)
        (lookUp, owner, whenBusy) = (NameLookups.of(server.owner), server.owner, server.whenBusy)
    }
}
