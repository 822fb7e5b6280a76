// SPDX-License-Identifier: Apache-2.0

internal import ManagedDefaults
internal import SDBus
internal import StoreBus

/// What a path below the root of the defaults domains names.
struct DomainTarget: Equatable {
    /// The user id; `nil` if the path names the caller's own user.
    let uid: UInt32?
    /// The domain; `nil` if the path names all of the user's domains.
    let domain: String?
    /// Whether the path names the layer for this host only.
    let isHost: Bool

    init?(_ path: String) {
        let prefix = BusNames.defaultsRoot + "/"
        guard path.hasPrefix(prefix) else { return nil }
        let parts = path.dropFirst(prefix.count).split(separator: "/", omittingEmptySubsequences: false)
        guard let user = parts.first, parts.count <= 3,
            // Users have the same names here as in the paths of stores.
            let owner = PathTarget("\(BusNames.usersPath)/\(user)")
        else { return nil }
        uid = owner.uid
        isHost = parts.count == 3
        if isHost && parts[2] != "host" { return nil }
        guard parts.count > 1 else {
            domain = nil
            return
        }
        let label = "\(prefix)\(user)/\(parts[1])"
        guard let decoded = ObjectPath.decode(label, prefix: prefix + user), DomainName.problem(decoded) == nil else {
            return nil
        }
        domain = decoded
    }
}
