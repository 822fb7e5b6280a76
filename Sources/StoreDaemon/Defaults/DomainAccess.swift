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
        if domain == own || domain.hasPrefix(own + ".") || groups.contains(domain) { return .write }
        return domain == ManagedFile.globalDomain.string ? .read : .none
    }
}
