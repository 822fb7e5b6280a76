// SPDX-License-Identifier: Apache-2.0

internal import ManagedDefaults
internal import PropertyList

/// What a caller may do with a domain.
enum DomainAccess: Equatable {
    /// The domain does not exist for the caller.
    case none
    case read
    case write

    /// Returns a caller's access. Ordinary programs may write all domains of their user. A sandboxed app may write its
    /// own, those whose names begin with its own and a dot, and those of its groups, and may read the global one.
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
        // Bytes are compared, because Swift considers some different names equal.
        let name = Text(domain)
        if name == Text(own) || domain.utf8.starts(with: (own + ".").utf8) { return .write }
        if groups.contains(where: { Text($0) == name }) { return .write }
        return name == ManagedFile.globalDomain ? .read : .none
    }
}
