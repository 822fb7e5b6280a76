// SPDX-License-Identifier: Apache-2.0

internal import RemoteAddress

/// The name of an account's remote, for users.
struct RemoteName {
    /// The server's name, or the folder.
    let text: String

    init(_ url: String) {
        guard let colon = url.firstRange(of: "://") else {
            text = url.shown
            return
        }
        let rest = url[colon.upperBound...]
        text = rest.hasPrefix("/") ? (PercentCoding.decode(rest) ?? String(rest)).shown : Self.host(rest).shown
    }

    private static func host(_ rest: Substring) -> String {
        let members = rest.prefix { !"/?#".contains($0) }.split(separator: ",")
        return members.first.map(String.init) ?? String(rest)
    }
}
