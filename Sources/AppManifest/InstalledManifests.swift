// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Glibc

/// Where manifests are installed.
package enum InstalledManifests {
    /// The directories for everybody; a file in a later one replaces that of the same name in an earlier one.
    package static let systemDirectories = ["/usr/share", "/run", "/etc"].map { $0 + "/ubiquitous-store/manifests.d" }

    /// The directories for one person's own service as well.
    package static func directories(dataHome: String) -> [String] {
        systemDirectories + [dataHome + "/ubiquitous-store/manifests.d"]
    }

    /// The manifest of a program: the one that has it among its executables.
    ///
    /// - Parameters:
    ///   - program: the path that the kernel has for it, without links.
    ///   - directories: in the order in which files replace each other.
    /// - Returns: `nil` if there is none, or there are several.
    package static func manifest(ofProgram program: String, in directories: [String]) -> Manifest? {
        let found = files(in: directories).compactMap(read).filter { $0.executables.contains { isSame($0, program) } }
        return Set(found.map(\.identifier)).count == 1 ? found.first : nil
    }

    private static func read(_ path: String) -> Manifest? {
        // What the service would refuse doesn't count here.
        guard let bytes = try? ManifestFile.read(path, trusting: geteuid()) else { return nil }
        return try? Manifest(propertyList: bytes)
    }

    /// The paths of the files that are in force, sorted.
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

    /// Whether a path in a manifest, which may lead over links, is a program's.
    private static func isSame(_ path: String, _ program: String) -> Bool {
        if path == program { return true }
        guard let real = realpath(path, nil) else { return false }
        defer { free(real) }
        return String(cString: real) == program
    }
}
