// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Files
internal import Foundation
internal import Logging
internal import StoreEngine

/// The keys of a user's stores that stay on the device, as the manifests of apps last said. An app's keys stay there
/// while its manifest is missing or refused, also beside another app's manifest, and after the app is gone: what was
/// uploaded can't be taken back.
struct RememberedLocalKeys {
    /// By the store's identifier, and by the app's.
    private var patterns: [String: [String: [String]]]
    private let path: String
    /// Why the file can't be read. Without it, local keys would be uploaded.
    private(set) var failure: EngineError?

    init(of user: UserDirectory) {
        path = user.path + "/local-keys.plist"
        patterns = [:]
        do throws(SystemError) {
            let bytes = try Files.contents(of: path, atMost: PrivateFile.largest)
            patterns = bytes.flatMap { PrivateFile.decode([String: [String: [String]]].self, from: $0) } ?? [:]
        } catch {
            failure = .storage("\(path) can't be read: \(error)")
        }
    }

    /// Returns the local keys of a store that other apps have declared.
    func patterns(of store: String, besides manifests: [Manifest]) -> [String] {
        guard var apps = patterns[store] else { return [] }
        for manifest in manifests { apps[manifest.applicationIdentifier] = nil }
        return apps.values.flatMap(\.self)
    }

    /// Notes what valid manifests of a store say. If it can't be written, the next load of the store tries again.
    mutating func note(_ manifests: [Manifest], of store: String, _ logger: Logger) {
        var apps = patterns[store] ?? [:]
        for manifest in manifests {
            apps[manifest.applicationIdentifier] = manifest.localKeys.isEmpty ? nil : manifest.localKeys
        }
        replace(apps, of: store, logger)
    }

    /// Forgets a store, which is removed with its local values.
    mutating func forget(_ store: String, _ logger: Logger) { replace([:], of: store, logger) }

    private mutating func replace(_ apps: [String: [String]], of store: String, _ logger: Logger) {
        if failure != nil { return }
        let former = patterns
        patterns[store] = apps.isEmpty ? nil : apps
        if patterns == former { return }
        do {
            let encoder = PropertyListEncoder()
            encoder.outputFormat = .binary
            let bytes = Array(try encoder.encode(patterns))
            // Apps can register any number of manifests, one after the other.
            guard bytes.count <= PrivateFile.largest,
                apps.values.reduce(0, { $0 + $1.count }) <= RegisteredManifests.mostLocalKeys
            else {
                logger.warning("There are too many local keys of \(store) to be recorded.")
                patterns = former
                return
            }
            try PrivateFile.replace(path, with: bytes)
        } catch {
            logger.warning("The local keys of \(store) can't be recorded: \(error)")
            patterns = former
        }
    }
}
