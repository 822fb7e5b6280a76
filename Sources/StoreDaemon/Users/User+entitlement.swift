// SPDX-License-Identifier: Apache-2.0

internal import AppManifest

/// Which of the user's stores a caller may open.
extension User {
    /// Whether a caller may open a store: an ordinary program any that is declared, a sandboxed app its own.
    func isEntitled(_ caller: CallerIdentity, to identifier: String) -> Bool {
        // Of an ordinary program only the one is looked up: this is asked at each store that is opened.
        caller.engine == .host ? declares(identifier) : entitled(caller).contains(identifier)
    }

    /// The identifiers that a caller may open.
    func entitled(_ caller: CallerIdentity) -> [String] {
        switch caller.engine {
        case .host: declaredIdentifiers.sorted()
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
        let declared = identifiers(ofApplication: application)
        let isImplied = declared.isEmpty && caller.engine == .flatpak && Manifest.isName(application)
        return isImplied && !hasManifest(application) ? [application] : declared
    }
}
