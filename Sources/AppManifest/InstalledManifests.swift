// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Glibc

/// The directories where manifests are installed.
package enum InstalledManifests {
    /// The system's directories. A file in a later one replaces a file of the same name in an earlier one.
    package static let systemDirectories = ["/usr/share", "/run", "/etc"].map { $0 + "/ubiquitous-store/manifests.d" }

    /// The directories of a service in user mode: the system's, and the user's own.
    package static func directories(dataHome: String) -> [String] {
        systemDirectories + [dataHome + "/ubiquitous-store/manifests.d"]
    }

    /// Returns the manifest whose executables contain a program.
    ///
    /// - Parameters:
    ///   - program: its path according to the kernel, with links resolved.
    ///   - directories: in order; files in later ones replace those in earlier ones.
    /// - Returns: `nil` if there is none, or if there are several.
    package static func manifest(ofProgram program: String, in directories: [String]) -> Manifest? {
        let found = files(in: directories).compactMap(read).filter { $0.executables.contains { isSame($0, program) } }
        return Set(found.map(\.identifier)).count == 1 ? found.first : nil
    }

    private static func read(_ path: String) -> Manifest? {
        // A manifest that the service would refuse doesn't count.
        guard let bytes = try? ManifestFile.read(path, trusting: geteuid()) else { return nil }
        return try? Manifest(propertyList: bytes)
    }

    /// Returns the paths of the files in force, sorted.
    package static func files(in directories: [String]) -> [String] {
        var files: [String: String] = [:]
        for directory in directories {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
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
