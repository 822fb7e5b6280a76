// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Files
internal import Glibc
internal import Logging
internal import SDBus

/// The directories where manifests are installed, read again when one of them changes.
@BusActor
final class ManifestDirectories {
    private var directories: WatchedDirectories?
    private let paths: [String]
    var logger: Logger
    private var stamps: [FileStamp] = []

    /// The manifests by the paths of their files. One that is refused after a change stays in force as it was: it may be
    /// half written, and its app's settings must not look lost meanwhile.
    private var lastValid: [String: Manifest] = [:]
    /// The manifests in force for all users.
    private(set) var manifests = ManifestSet()
    /// Which files and directories are refused or can't be read, in sentences.
    private(set) var problems: [String] = []
    /// Called with the former manifests after the directories were read, because they may have changed.
    var onChange: ((ManifestSet) -> Void)?

    init(_ paths: [String], logger: Logger) {
        (self.paths, self.logger) = (paths, logger)
        directories = WatchedDirectories(paths) { [weak self] in self?.read() }
        read()
    }

    /// Reads all directories again.
    func read() {
        directories?.watch()
        stamps = paths.map(FileStamp.init)
        var found: [String: Manifest] = [:]
        problems = []
        let files = InstalledManifests.files(in: paths) { directory, reason in
            problems.append("The manifests in \(directory) can't be read: \(reason).")
            let known = lastValid.keys.filter { $0.hasPrefix(directory + "/") }
            return known.map { String($0.dropFirst(directory.count + 1)) }
        }
        for path in files {
            do {
                let bytes = try ManifestFile.read(path, trusting: geteuid())
                if bytes.isEmpty { continue }
                found[path] = try Manifest(propertyList: bytes)
            } catch {
                let isGone = access(path, F_OK) != 0 && errno == ENOENT
                found[path] = isGone ? nil : lastValid[path]
                let isInForce = found[path] != nil
                problems.append(
                    "The manifest \(path) is refused: \(error)." + (isInForce ? " It stays in force as it was." : ""))
            }
        }
        lastValid = found
        let resolved = ManifestSet.resolve(found.map { ($0.key, $0.value) })
        problems += resolved.problems.map { "Manifests are refused: \($0)." }
        for problem in problems { logger.warning("\(problem)") }
        let former = manifests
        manifests = resolved.set
        onChange?(former)
    }

    /// Reads the directories now if one has changed, before a caller is refused. It doesn't wait for further changes.
    func readIfChanged() {
        let isChanging = directories?.takeChange() == true
        if isChanging || paths.map(FileStamp.init) != stamps { read() }
    }
}
