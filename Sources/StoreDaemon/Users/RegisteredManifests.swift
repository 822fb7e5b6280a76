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
    /// The bytes of the files, by the apps, and together.
    private var sizes: [String: Int] = [:]
    private var size = 0

    /// - Parameter logger: gets a warning for each refused manifest; `nil` if none is wanted.
    init(of user: UserDirectory, logger: Logger?) {
        directory = user.path + "/manifests.d"
        for name in Self.names(in: directory).prefix(Self.most) {
            let path = "\(directory)/\(name)"
            do {
                let bytes = try ManifestFile.read(path, trusting: geteuid())
                guard size + bytes.count <= Self.most * Self.bytesEach else {
                    throw Manifest.Refusal(key: nil, reason: "the registered manifests are too large together")
                }
                note(try Manifest(propertyList: bytes), bytes.count)
            } catch {
                logger?.warning("The registered manifest \(path) is refused: \(error)")
            }
        }
    }

    /// The most manifests that an administrator may let a user register. More, in a restored backup, are ignored.
    static let most = 1024
    /// The bytes for each manifest that a user may register. The files may have that many together. All are read in one
    /// piece, also for a call of somebody whose data isn't open.
    static let bytesEach = 4 << 10

    /// Whether a manifest's file may take its place.
    /// - Parameter maximum: how many manifests the user may register.
    func hasRoom(forBytes bytes: Int, of manifest: Manifest, atMost maximum: Int) -> Bool {
        size - sizes[manifest.applicationIdentifier, default: 0] + bytes <= max(size, maximum * Self.bytesEach)
    }

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
    mutating func note(_ manifest: Manifest, _ bytes: Int) {
        let application = manifest.applicationIdentifier
        size += bytes - sizes[application, default: 0]
        (manifests[application], sizes[application]) = (manifest, bytes)
    }

    private func path(of manifest: Manifest) -> String { "\(directory)/\(manifest.applicationIdentifier).plist" }

    private static func names(in directory: String) -> [String] {
        DirectoryListing.names(in: directory).filter { $0.hasSuffix(".plist") }.sorted()
    }
}
