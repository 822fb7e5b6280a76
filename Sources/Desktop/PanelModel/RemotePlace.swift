// SPDX-License-Identifier: Apache-2.0

internal import RemoteAddress

/// The location of an account, for users.
struct RemotePlace {
    /// The server's name, or the folder.
    let name: String

    init(_ url: String) {
        guard let colon = url.firstRange(of: "://") else {
            name = url.shown
            return
        }
        let rest = url[colon.upperBound...]
        name = rest.hasPrefix("/") ? (PercentCoding.decode(rest) ?? String(rest)).shown : Self.host(rest).shown
    }

    private static func host(_ rest: Substring) -> String {
        let members = rest.prefix { !"/?#".contains($0) }.split(separator: ",")
        return members.first.map(String.init) ?? String(rest)
    }
}
