// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Glibc
internal import Logging
internal import SDBus

/// The directories where manifests are installed, read again when one of them changes.
@BusActor
final class ManifestDirectories {
    private let directories: [String]
    var logger: Logger
    private var watches: [EventSource] = []
    private var reload: EventSource?
    private var stamps: [FileStamp] = []

    /// The manifests that are in force for everybody.
    private(set) var manifests = ManifestSet()
    /// Called when the manifests may have become others.
    var onChange: (() -> Void)?

    init(_ directories: [String], logger: Logger) {
        self.directories = directories
        self.logger = logger
        read()
    }

    /// Reads all directories anew.
    func read() {
        watch()
        stamps = directories.map(FileStamp.init)
        var found: [(source: String, manifest: Manifest)] = []
        for path in InstalledManifests.files(in: directories) {
            do {
                let bytes = try ManifestFile.read(path, trusting: geteuid())
                if bytes.isEmpty { continue }
                found.append((path, try Manifest(propertyList: bytes)))
            } catch {
                logger.warning("The manifest \(path) is refused: \(error)")
            }
        }
        let resolved = ManifestSet.resolve(found)
        for problem in resolved.problems { logger.warning("Manifests are refused: \(problem)") }
        manifests = resolved.set
        onChange?()
    }

    /// Reads the directories now if one has changed, and doesn't wait until it is quiet: somebody is about to be refused.
    func readIfChanged() {
        guard reload != nil || directories.map(FileStamp.init) != stamps else { return }
        reload = nil
        read()
    }

    // MARK: Watching

    /// Watches each directory, or where it isn't there the nearest one above it, which it will come to be in.
    private func watch() {
        let places = Set(directories.map(Self.nearestExisting))
        watches = places.compactMap { place in
            try? EventLoop.shared.watch(directory: place) { [weak self] _ in self?.reloadSoon() }
        }
    }

    /// A package's files come one after the other: they are read once, when that is over.
    private func reloadSoon() {
        reload = EventLoop.shared.after(.milliseconds(200)) { [weak self] in
            self?.reload = nil
            self?.read()
        }
    }

    static func nearestExisting(_ path: String) -> String {
        var path = path
        var status = stat()
        while path.count > 1, stat(path, &status) != 0 || status.st_mode & S_IFMT != S_IFDIR {
            path = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        }
        return path.isEmpty ? "/" : path
    }
}
