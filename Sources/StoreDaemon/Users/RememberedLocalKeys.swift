// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Files
internal import Glibc
internal import Logging
internal import PropertyList
internal import PropertyListFiles
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
    private var isDamaged = false
    /// Whether a file was damaged, so that local keys may be missing here.
    private(set) var isIncomplete: Bool

    init(of user: UserDirectory) {
        path = user.path + "/local-keys.plist"
        patterns = [:]
        isIncomplete = access(Self.aside(path), F_OK) == 0
        do throws(SystemError) {
            guard let bytes = try Files.contents(of: path, atMost: PrivateFile.largest) else {
                isDamaged = access(path, F_OK) == 0
                return
            }
            let read = PrivateFile.decode([String: [String: [String]]].self, from: bytes)
            (patterns, isDamaged) = (read ?? [:], read == nil)
        } catch {
            failure = .storage("\(path) can't be read: \(error)")
        }
    }

    /// Renames the file if it is damaged. What its stores have on this device only stays there: see ``keep(_:of:_:)``.
    mutating func setAsideDamaged(_ logger: Logger) {
        guard isDamaged else { return }
        let aside = Self.aside(path)
        guard rename(path, aside) == 0 else {
            failure = .storage("\(path) is damaged, and can't be renamed: \(SystemError())")
            return
        }
        (isDamaged, isIncomplete) = (false, true)
        logger.error("\(path) is damaged, and kept as \(aside). What only this device has of its stores stays here.")
    }

    private static func aside(_ path: String) -> String { path + ".damaged" }

    /// Keeps a store's keys local for no app, because the damaged file may have said so. Only the removal of the store ends
    /// that.
    /// - Returns: whether they could be recorded. Otherwise they would be uploaded.
    mutating func keep(_ keys: [Key], of store: String, _ logger: Logger) -> Bool {
        var apps = patterns[store] ?? [:]
        apps[Self.noApp, default: []] += keys.map(\.string)
        replace(apps, of: store, logger)
        return patterns[store] == apps
    }

    /// No app has an empty identifier.
    private static let noApp = ""

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
            let bytes = try FileFormat.binary.write(Self.value(patterns))
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

    /// Foundation's encoder writes equal texts once. Such a file may be taken for an attack when it is read, because it is
    /// far larger than it looks.
    private static func value(_ patterns: [String: [String: [String]]]) -> Value {
        func dictionary<Member>(_ members: [String: Member], _ value: (Member) -> Value) -> Value {
            .dictionary(Dictionary(uniqueKeysWithValues: members.map { (Text($0), value($1)) }))
        }
        return dictionary(patterns) { apps in
            dictionary(apps) { keys in .array(keys.map { .string(Text($0)) }) }
        }
    }
}
