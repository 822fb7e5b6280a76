// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc

/// The apps that are installed, as their .desktop files say (Desktop Entry Specification).
enum InstalledApps {
    /// Returns the identifier of an app: its file's name without `.desktop`.
    ///
    /// - Parameter name: the identifier, with or without `.desktop`, or the name in the file.
    /// - Returns: `nil` if there is no such app.
    /// - Throws: ``Failure`` if several apps have the name.
    static func identifier(of name: String) throws -> String? {
        if name.utf8.contains(UInt8(ascii: "/")) { return nil }
        let identifier = name.hasSuffix(".desktop") ? String(name.dropLast(8)) : name
        let directories = directories
        if directories.contains(where: { access("\($0)/\(identifier).desktop", F_OK) == 0 }) { return identifier }
        let named = directories.flatMap { directory in
            DirectoryListing.names(in: directory).filter {
                $0.hasSuffix(".desktop") && self.name(in: "\(directory)/\($0)") == name
            }
        }
        let identifiers = Set(named.map { String($0.dropLast(8)) }).sorted()
        if identifiers.count > 1 {
            throw Failure(
                .usage, "Several apps are named \(Output.quoted(name))",
                advice: "Name one of these: \(identifiers.map { Output.printableWord($0) }.joined(separator: ", ")).")
        }
        return identifiers.first
    }

    /// Returns the name in a .desktop file, which may be a link, as those of flatpaks are.
    private static func name(in path: String) -> String? {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size <= 1 << 20,
            let bytes = try? WholeFile.read(path)
        else { return nil }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        let entry = lines.drop { $0 != "[Desktop Entry]" }.dropFirst().prefix { !$0.hasPrefix("[") }
        return entry.first { $0.hasPrefix("Name=") }.map { String($0.dropFirst(5)) }
    }

    /// The directories of .desktop files (XDG Base Directory Specification).
    private static var directories: [String] {
        let shared = Variable.dataDirectories.value ?? "/usr/local/share:/usr/share"
        let own = BaseDirectory.data.path(in: Variable.value(of:)).map { [$0] } ?? []
        return (own + shared.split(separator: ":").map(String.init)).map { $0 + "/applications" }
    }
}
