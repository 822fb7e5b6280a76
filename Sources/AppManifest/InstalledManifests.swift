// SPDX-License-Identifier: Apache-2.0

package import Files
internal import Glibc

/// The directories where manifests are installed.
package enum InstalledManifests {
    /// The system's directories. A file in a later one replaces a file of the same name in an earlier one.
    package static let systemDirectories = ["/usr/share", "/run", "/etc"].map { $0 + "/ubiquitous-store/manifests.d" }

    /// The directories of a service in user mode: the system's, and the user's own if there is one.
    /// - Parameter environment: returns the value of an environment variable.
    package static func directories(in environment: (String) -> String?) -> [String] {
        systemDirectories + (userDirectory(in: environment).map { [$0] } ?? [])
    }

    /// The user's own directory, which only a service in user mode reads; `nil` if there is none.
    /// - Parameter environment: returns the value of an environment variable.
    package static func userDirectory(in environment: (String) -> String?) -> String? {
        BaseDirectory.data.path(in: environment).map { $0 + "/ubiquitous-store/manifests.d" }
    }

    /// Returns the manifest whose executables contain a program.
    ///
    /// - Parameters:
    ///   - program: its path according to the kernel, with links resolved.
    ///   - directories: in order; files in later ones replace those in earlier ones.
    /// - Returns: `nil` if there is none, or if several name different stores.
    package static func manifest(ofProgram program: String, in directories: [String]) -> Manifest? {
        only(directories) { name(ofProgram: program, in: $0) != nil }
    }

    /// Returns the path by which a manifest names a program, which may contain links; `nil` if it doesn't.
    package static func name(ofProgram program: String, in manifest: Manifest) -> String? {
        manifest.executables.first { isSame($0, program) }
    }

    /// Returns the manifest of an app's identifier.
    /// - Returns: `nil` if there is none, or if several name different stores.
    package static func manifest(ofApp identifier: String, in directories: [String]) -> Manifest? {
        only(directories) { $0.applicationIdentifier == identifier }
    }

    /// Returns the files in force, other than those of one name, with which a manifest can't share its identifier. The
    /// service refuses all of them then.
    /// - Parameter name: the name of the manifest's file, which replaces another of the same name.
    package static func rivals(of manifest: Manifest, named name: String, in directories: [String]) -> [String] {
        guard manifest.identifier != nil else { return [] }
        let others = files(in: directories).filter { !$0.hasSuffix("/" + name) }.compactMap { path in
            read(path).flatMap { $0.identifier == manifest.identifier ? (path: path, manifest: $0) : nil }
        }
        return Manifest.mayShare(others.map(\.manifest) + [manifest]) ? [] : others.map(\.path)
    }

    private static func only(_ directories: [String], _ isWanted: (Manifest) -> Bool) -> Manifest? {
        let found = files(in: directories).compactMap(read).filter(isWanted)
        return Set(found.map(\.identifier)).count == 1 ? found.first : nil
    }

    private static func read(_ path: String) -> Manifest? {
        // A manifest that the service would refuse doesn't count.
        guard let bytes = try? ManifestFile.read(path, trusting: geteuid()) else { return nil }
        return try? Manifest(propertyList: bytes)
    }

    /// Returns the paths of the files in force, sorted.
    /// - Parameter unreadable: returns the names to assume in a directory that exists but can't be read.
    package static func files(
        in directories: [String],
        unreadable: (_ directory: String, _ reason: SystemError) -> [String] = { _, _ in [] }
    ) -> [String] {
        var files: [String: String] = [:]
        for directory in directories {
            var names: [String]
            do throws(SystemError) { names = try DirectoryListing.list(directory) } catch {
                names = unreadable(directory, error)
            }
            for name in names where name.hasSuffix(".plist") && !name.hasPrefix(".") {
                files[name] = "\(directory)/\(name)"
            }
        }
        return files.values.sorted()
    }

    /// Whether a path in a manifest, which may contain links, leads to a program.
    private static func isSame(_ path: String, _ program: String) -> Bool {
        if path == program { return true }
        guard let real = realpath(path, nil) else { return false }
        defer { free(real) }
        return String(cString: real) == program
    }
}
