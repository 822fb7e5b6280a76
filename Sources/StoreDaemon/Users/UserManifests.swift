// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import StoreEngine

/// What is declared for a user, and so which stores and domains a caller may open. No data is opened to find out.
struct UserManifests {
    /// Those for all users.
    let installed: ManifestSet
    /// Those that the user's apps have registered.
    let registered: RegisteredManifests
    /// Identifiers without a manifest may be opened, for development.
    let allowsUndeclared: Bool

    /// All of them.
    var all: [Manifest] { installed.all + registered.all }

    /// Whether a store may be opened.
    func declares(_ identifier: String) -> Bool {
        hasManifest(identifier) || (allowsUndeclared && Manifest.isName(identifier))
    }

    func hasManifest(_ identifier: String) -> Bool {
        installed.declares(identifier) || registered.declares(identifier)
    }

    /// The keys of a store that stay on the device.
    func localKeys(of identifier: String) -> LocalKeys {
        installed.declares(identifier) ? installed.localKeys(of: identifier) : registered.localKeys(of: identifier)
    }

    // MARK: Stores

    /// Whether a caller may open a store: an ordinary program any that is declared, a sandboxed app its own.
    func isEntitled(_ caller: CallerIdentity, to identifier: String) -> Bool {
        // Of an ordinary program only the one is looked up: this is asked at each store that is opened.
        caller.engine == .host ? declares(identifier) : entitled(caller).contains(identifier)
    }

    /// The identifiers that a caller may open.
    func entitled(_ caller: CallerIdentity) -> [String] {
        switch caller.engine {
        case .host: Set(installed.identifiers).union(registered.identifiers).sorted()
        case .flatpak: ownIdentifiers(of: caller)
        case .unknown: []
        }
    }

    /// The identifiers of the caller's app; where none can be told, none. Sorted.
    ///
    /// A sandboxed app can't install a manifest. Without one it has the store of its own name, unless another app has.
    func ownIdentifiers(of caller: CallerIdentity) -> [String] {
        let application = caller.applicationIdentifier
        if caller.engine == .unknown || application.isEmpty { return [] }
        let declared = Set(installed.identifiers(ofApplication: application))
            .union(registered.identifiers(ofApplication: application)).sorted()
        let isImplied = declared.isEmpty && caller.engine == .flatpak && Manifest.isName(application)
        return isImplied && !hasManifest(application) ? [application] : declared
    }

    // MARK: Domains

    /// What a caller may do with a domain.
    func access(of caller: CallerIdentity, to domain: String) -> DomainAccess {
        let own = caller.engine == .flatpak ? all : []
        let groups = own.filter { $0.applicationIdentifier == caller.applicationIdentifier }.flatMap(\.groups)
        return DomainAccess.of(caller, to: domain, groups: groups)
    }
}
