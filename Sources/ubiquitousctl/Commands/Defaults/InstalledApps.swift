// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Files
internal import Glibc

/// The apps that are installed, as their .desktop files say (Desktop Entry Specification).
enum InstalledApps {
    /// Returns the identifier of an app: its file's name without `.desktop`.
    ///
    /// - Parameter name: the identifier, with or without `.desktop`, or the name that users see.
    /// - Returns: `nil` if there is no such app.
    static func identifier(of name: String) -> String? {
        if name.utf8.contains(UInt8(ascii: "/")) { return nil }
        let identifier = name.hasSuffix(".desktop") ? String(name.dropLast(8)) : name
        let directories = directories
        if directories.contains(where: { access("\($0)/\(identifier).desktop", F_OK) == 0 }) { return identifier }
        for directory in directories {
            for file in DirectoryListing.names(in: directory).sorted() where file.hasSuffix(".desktop") {
                let text = Files.text(of: "\(directory)/\(file)", atMost: 1 << 20) ?? ""
                if text.split(separator: "\n").contains("Name=\(name)") { return String(file.dropLast(8)) }
            }
        }
        return nil
    }

    /// The directories of .desktop files (XDG Base Directory Specification).
    private static var directories: [String] {
        let shared = Variable.dataDirectories.value ?? "/usr/local/share:/usr/share"
        let all =
            [FileName.home("XDG_DATA_HOME", ".local/share")].compactMap(\.self)
            + shared.split(separator: ":").map(String.init)
        return all.map { $0 + "/applications" }
    }
}
