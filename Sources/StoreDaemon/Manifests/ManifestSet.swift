// SPDX-License-Identifier: Apache-2.0

internal import AppManifest

/// The manifests in force: which identifiers are declared, and by which apps.
struct ManifestSet {
    private(set) var byIdentifier: [String: [Manifest]] = [:]
    /// The manifests of apps without a store.
    private(set) var withoutStore: [Manifest] = []
    /// Identifiers that nobody gets, because unrelated apps declare them, with the paths of their manifests.
    private(set) var disputed: [String: [String]] = [:]

    /// Combines manifests. Several may declare one identifier if they share their team or app.
    /// - Parameter manifests: each manifest with the path of its file.
    /// - Returns: the set, and a sentence for each manifest that was refused.
    static func resolve(_ manifests: [(source: String, manifest: Manifest)]) -> (set: ManifestSet, problems: [String]) {
        var set = ManifestSet()
        var problems: [String] = []
        for (identifier, claims) in Dictionary(grouping: manifests, by: \.manifest.identifier) {
            let group = claims.map(\.manifest)
            guard let identifier else {
                set.withoutStore = group
                continue
            }
            if Manifest.mayShare(group) {
                set.byIdentifier[identifier] = group
            } else {
                let sources = claims.map(\.source).sorted()
                set.disputed[identifier] = sources
                problems.append(
                    "\(sources.joined(separator: ", ")): the identifier \(identifier) is declared by apps that share "
                        + "neither their team nor their application-identifier, so none of them gets it")
            }
        }
        return (set, problems.sorted())
    }

    /// All manifests in the set.
    var all: [Manifest] { byIdentifier.values.flatMap { $0 } + withoutStore }

    /// Returns the patterns of keys that roam by these manifests and not by former ones, or the other way round, or in
    /// another store, by the domains of their apps.
    func roamingDifference(from former: ManifestSet) -> [String: Set<String>] {
        roaming.symmetricDifference(former.roaming)
            .reduce(into: [:]) { $0[$1.domain, default: []].insert($1.pattern) }
    }

    private struct Roaming: Hashable {
        let domain: String
        let pattern: String
        let store: String?
    }

    private var roaming: Set<Roaming> {
        Set(
            all.flatMap { manifest in
                manifest.ubiquitousDefaults.map {
                    Roaming(domain: manifest.applicationIdentifier, pattern: $0, store: manifest.identifier)
                }
            })
    }

    /// The declared identifiers, sorted.
    var identifiers: [String] { byIdentifier.keys.sorted() }

    func declares(_ identifier: String) -> Bool { byIdentifier[identifier] != nil }

    /// The identifiers that an app declares, sorted.
    func identifiers(ofApplication application: String) -> [String] {
        byIdentifier.filter { $0.value.contains { $0.applicationIdentifier == application } }.keys.sorted()
    }

    /// Returns the manifests that declare a store; `nil` if none does.
    func manifests(of identifier: String) -> [Manifest]? { byIdentifier[identifier] }
}
