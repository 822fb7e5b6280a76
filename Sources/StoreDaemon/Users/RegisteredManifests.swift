// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Files
internal import Glibc
internal import Logging
internal import Replication
internal import StoreEngine

/// The manifests that a user's apps have registered, kept with the user's data.
struct RegisteredManifests {
    private let directory: String
    private var manifests: [String: Manifest] = [:]

    /// - Parameter logger: gets a warning for each refused manifest; `nil` if none is wanted.
    init(of user: UserDirectory, logger: Logger?) {
        directory = user.path + "/manifests.d"
        for name in Self.names(in: directory).prefix(Self.most) {
            let path = "\(directory)/\(name)"
            do {
                let manifest = try Manifest(propertyList: try ManifestFile.read(path, trusting: geteuid()))
                manifests[manifest.applicationIdentifier] = manifest
            } catch {
                logger?.warning("The registered manifest \(path) is refused: \(error)")
            }
        }
    }

    /// The most manifests that an administrator may let a user register. More, in a restored backup, are ignored.
    static let most = 1024

    var count: Int { manifests.count }

    /// All registered manifests.
    var all: [Manifest] { Array(manifests.values) }

    var identifiers: Set<String> { Set(manifests.values.compactMap(\.identifier)) }

    func declares(_ identifier: String) -> Bool { manifests.values.contains { $0.identifier == identifier } }

    /// Returns the identifiers that an app declares.
    func identifiers(ofApplication application: String) -> [String] {
        manifests[application]?.identifier.map { [$0] } ?? []
    }

    func has(_ application: String) -> Bool { manifests[application] != nil }

    /// The manifests that declare a store.
    func manifests(of identifier: String) -> [Manifest] { manifests.values.filter { $0.identifier == identifier } }

    /// The most patterns of local keys that the manifests of a store may have together. All are read whenever the store
    /// is loaded.
    static let mostLocalKeys = 1024

    /// Whether a manifest may be registered besides those of its store.
    func hasRoom(for manifest: Manifest) -> Bool {
        let others = manifests.values.filter {
            $0.identifier == manifest.identifier && $0.applicationIdentifier != manifest.applicationIdentifier
        }
        return others.reduce(manifest.localKeys.count) { $0 + $1.localKeys.count } <= Self.mostLocalKeys
    }

    /// Whether the same manifest is registered.
    func holds(_ manifest: Manifest) -> Bool { manifests[manifest.applicationIdentifier] == manifest }

    /// Returns the path of a manifest's file, in a directory that exists.
    func makePath(of manifest: Manifest) throws -> String {
        guard mkdir(directory, 0o700) == 0 || errno == EEXIST else {
            throw PrivateFile.Failure(path: directory, code: errno)
        }
        return path(of: manifest)
    }

    /// Notes a manifest whose file was written. It replaces an earlier one of the same app.
    mutating func note(_ manifest: Manifest) { manifests[manifest.applicationIdentifier] = manifest }

    private func path(of manifest: Manifest) -> String { "\(directory)/\(manifest.applicationIdentifier).plist" }

    private static func names(in directory: String) -> [String] {
        DirectoryListing.names(in: directory).filter { $0.hasSuffix(".plist") }.sorted()
    }
}
