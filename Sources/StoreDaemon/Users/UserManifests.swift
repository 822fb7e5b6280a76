// SPDX-License-Identifier: Apache-2.0

internal import AppManifest

/// The manifests that apply to a user, and the stores and domains that callers may open by them. This opens no data.
struct UserManifests {
    /// The manifests for all users.
    let installed: ManifestSet
    /// The manifests that the user's apps have registered.
    let registered: RegisteredManifests
    /// Whether stores without a manifest may be opened, for development.
    let allowsUndeclared: Bool

    /// All manifests that count.
    var all: [Manifest] { installed.all + registered.all.filter(counts) }

    /// Whether a registered manifest counts. What a system manifest declares later is the system's.
    private func counts(_ manifest: Manifest) -> Bool { manifest.identifier.map { !installed.declares($0) } ?? true }

    /// Whether a store may be opened.
    func declares(_ identifier: String) -> Bool {
        hasManifest(identifier) || (allowsUndeclared && Manifest.isName(identifier))
    }

    func hasManifest(_ identifier: String) -> Bool {
        installed.declares(identifier) || registered.declares(identifier)
    }

    /// The manifests of a store that count.
    func manifests(of identifier: String) -> [Manifest] {
        installed.manifests(of: identifier) ?? registered.manifests(of: identifier)
    }

    // MARK: Stores

    /// Whether a caller may open a store. Ordinary programs may open every declared one, sandboxed apps only their own.
    func isEntitled(_ caller: CallerIdentity, to identifier: String) -> Bool {
        // For ordinary programs only this one is looked up, because every opening of a store asks.
        caller.engine == .host ? declares(identifier) : entitled(caller).contains(identifier)
    }

    /// Returns the identifiers that a caller may open.
    func entitled(_ caller: CallerIdentity) -> [String] {
        switch caller.engine {
        case .host: Set(installed.identifiers).union(registered.identifiers).sorted()
        case .flatpak: ownIdentifiers(of: caller)
        case .unknown: []
        }
    }

    /// Returns the identifiers of the caller's app, sorted; none if the app isn't known.
    ///
    /// A sandboxed app can't install a manifest. Without one it has the store of its own name, unless that is declared.
    func ownIdentifiers(of caller: CallerIdentity) -> [String] {
        let application = caller.applicationIdentifier
        if caller.engine == .unknown || application.isEmpty { return [] }
        let declared = Set(installed.identifiers(ofApplication: application))
            .union(registered.identifiers(ofApplication: application).filter { !installed.declares($0) }).sorted()
        let isImplied = declared.isEmpty && caller.engine == .flatpak && Manifest.isName(application)
        return isImplied && !hasManifest(application) ? [application] : declared
    }

    // MARK: Domains

    /// Returns a caller's access to a domain.
    func access(of caller: CallerIdentity, to domain: String) -> DomainAccess { access(of: caller)(domain) }

    /// Returns a caller's access to any domain. The manifests are searched once, because there may be many of both.
    func access(of caller: CallerIdentity) -> (_ domain: String) -> DomainAccess {
        let own = caller.engine == .flatpak ? all : []
        let groups = own.filter { $0.applicationIdentifier == caller.applicationIdentifier }.flatMap(\.groups)
        return { DomainAccess.of(caller, to: $0, groups: groups) }
    }
}
