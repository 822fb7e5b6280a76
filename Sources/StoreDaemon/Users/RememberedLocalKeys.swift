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
    fileprivate typealias Patterns = [String: [String: [String]]]

    private var patterns: Patterns = [:]
    /// About the bytes that the patterns take in the file.
    private var size = 0
    private var isSaved = true
    private let path: String
    /// Why the file can't be read. Without it, local keys would be uploaded.
    private(set) var failure: EngineError?
    private var isDamaged = false
    /// Whether a file was damaged, so that local keys may be missing here.
    private(set) var isIncomplete: Bool

    init(of user: UserDirectory) {
        path = user.path + "/local-keys.plist"
        isIncomplete = access(Self.aside(path), F_OK) == 0
        do throws(SystemError) {
            guard let bytes = try Files.contents(of: path, atMost: PrivateFile.largest) else {
                isDamaged = access(path, F_OK) == 0
                return
            }
            let read = Self.patterns(bytes)
            (patterns, isDamaged) = (read ?? [:], read == nil)
            size = patterns.reduce(0) { $0 + Self.size(of: $1.value, $1.key) }
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
    /// - Returns: whether there was room. Otherwise they would be uploaded.
    mutating func keep(_ keys: [Key], of store: String) -> Bool {
        var apps = patterns[store] ?? [:]
        apps[Self.noApp, default: []] += keys.map(\.string)
        return replace(apps, of: store)
    }

    /// No app has an empty identifier.
    private static let noApp = ""

    /// Returns the local keys of a store that other apps have declared.
    func patterns(of store: String, besides manifests: [Manifest]) -> [String] {
        guard var apps = patterns[store] else { return [] }
        for manifest in manifests { apps[manifest.applicationIdentifier] = nil }
        return apps.values.flatMap(\.self)
    }

    /// Notes what valid manifests of a store say.
    /// - Returns: whether there was room. Otherwise these keys would be uploaded once the manifests are gone.
    mutating func note(_ manifests: [Manifest], of store: String) -> Bool {
        var apps = patterns[store] ?? [:]
        for manifest in manifests {
            apps[manifest.applicationIdentifier] = manifest.localKeys.isEmpty ? nil : manifest.localKeys
        }
        return replace(apps, of: store)
    }

    /// Forgets a store, which is removed with its local values, except for what manifests still say.
    mutating func forget(_ store: String, besides manifests: [Manifest]) {
        let present = Set(manifests.map(\.applicationIdentifier))
        _ = replace((patterns[store] ?? [:]).filter { present.contains($0.key) }, of: store)
    }

    /// - Returns: whether there was room.
    private mutating func replace(_ apps: [String: [String]], of store: String) -> Bool {
        let former = patterns[store] ?? [:]
        if apps == former { return true }
        let count = apps.values.reduce(0) { $0 + $1.count }
        let next = size - Self.size(of: former, store) + Self.size(of: apps, store)
        // Apps can register any number of manifests, one after the other.
        guard next <= max(size, Self.largest), count <= RegisteredManifests.mostLocalKeys else { return false }
        patterns[store] = apps.isEmpty ? nil : apps
        (size, isSaved) = (next, false)
        return true
    }

    /// The most that is recorded, in about as many bytes. All of it is read when the user's data is opened.
    private static let largest = 256 << 10

    private static func size(of apps: [String: [String]], _ store: String) -> Int {
        let perText = 8
        return apps.reduce(0) { sum, app in
            app.value.reduce(sum + store.utf8.count + app.key.utf8.count + 2 * perText) { $0 + $1.utf8.count + perText }
        }
    }

    // MARK: The file

    /// What the file is to have. It can be written on any thread.
    struct Unsaved: Equatable, Sendable {
        fileprivate let path: String
        fileprivate let patterns: Patterns

        func write() throws {
            try PrivateFile.replace(path, with: try FileFormat.binary.write(RememberedLocalKeys.value(patterns)))
        }
    }

    /// Returns what the file doesn't have yet, once; `nil` if it has everything.
    mutating func takeUnsaved() -> Unsaved? {
        if isSaved || failure != nil { return nil }
        isSaved = true
        return Unsaved(path: path, patterns: patterns)
    }

    /// Notes that the file could not be written.
    mutating func noteUnsaved() { isSaved = false }

    private static func patterns(_ bytes: [UInt8]) -> Patterns? {
        func members<Member>(_ value: Value, _ member: (Value) -> Member?) -> [String: Member]? {
            guard case .dictionary(let entries) = value else { return nil }
            var members: [String: Member] = [:]
            for (key, value) in entries {
                guard let member = member(value) else { return nil }
                members[key.string] = member
            }
            return members
        }
        func texts(_ value: Value) -> [String]? {
            guard case .array(let values) = value else { return nil }
            let texts = values.compactMap { if case .string(let text) = $0 { text.string } else { nil } }
            return texts.count == values.count ? texts : nil
        }
        guard let value = try? FileFormat.binary.read(bytes) else { return nil }
        return members(value) { members($0, texts) }
    }

    /// Foundation's encoder writes equal texts once. Such a file may be taken for an attack when it is read, because it is
    /// far larger than it looks.
    fileprivate static func value(_ patterns: Patterns) -> Value {
        func dictionary<Member>(_ members: [String: Member], _ value: (Member) -> Value) -> Value {
            .dictionary(Dictionary(uniqueKeysWithValues: members.map { (Text($0), value($1)) }))
        }
        return dictionary(patterns) { apps in
            dictionary(apps) { keys in .array(keys.map { .string(Text($0)) }) }
        }
    }
}
