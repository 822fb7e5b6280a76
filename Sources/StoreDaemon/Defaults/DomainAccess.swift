// SPDX-License-Identifier: Apache-2.0

internal import ManagedDefaults
internal import PropertyList

/// What a caller may do with a domain.
enum DomainAccess: Equatable {
    /// The domain does not exist for the caller.
    case none
    case read
    case write

    /// The rule: an ordinary program has every domain of its user; an app in a sandbox has its own, those whose names go
    /// on from its own, and those of its groups, and reads the global one.
    ///
    /// - Parameter groups: the application groups that the app's manifests declare.
    static func of(_ caller: CallerIdentity, to domain: String, groups: [String]) -> DomainAccess {
        switch caller.engine {
        case .host: return .write
        case .unknown: return .none
        case .flatpak: break
        }
        let own = caller.applicationIdentifier
        if own.isEmpty { return .none }
        // By bytes: other names that Swift takes for equal are other domains.
        let name = Text(domain)
        if name == Text(own) || domain.utf8.starts(with: (own + ".").utf8) { return .write }
        if groups.contains(where: { Text($0) == name }) { return .write }
        return name == ManagedFile.globalDomain ? .read : .none
    }
}
