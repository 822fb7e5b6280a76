// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import ArgumentParser
internal import Glibc
internal import ManagedDefaults
internal import PropertyList

/// `manifest`.
struct ManifestCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "manifest",
        abstract: "Checks manifests, with which apps declare their stores.",
        subcommands: [ManifestCheckCommand.self])
}

/// `manifest check`. It works without the service, for builds of packages.
struct ManifestCheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Checks whether the service would accept a manifest, and prints what it declares.",
        discussion: """
            The service accepts an installed manifest only if it is a regular file that is owned by root or the \
            service's user and that nobody else may write to. In a directory that the service reads, anything else is \
            an error; elsewhere it is a warning. Exits with 2 if the service would refuse the manifest.
            """)

    @Flag(help: "Print an object of JSON.")
    var json = false

    @Argument(help: "The manifest: an XML or binary property list.", completion: .file(extensions: ["plist"]))
    var file: String

    func run() throws {
        let remark = try remark()
        let (manifest, keys) = try read(try WholeFile.read(file))
        try checkSpelling(keys)
        try checkPatterns(manifest)
        try checkGroups(manifest)
        try checkStore(of: manifest)
        if json { return Output.print(json: manifest.json) }
        let style = Style(for: 1)
        for (name, text) in manifest.lines { Output.print(style.dim(name) + Output.printable(text)) }
        if let remark { Output.remark(Sentence(verbatim: remark)) }
    }

    private func read(_ bytes: [UInt8]) throws -> (Manifest, keys: [String]) {
        if bytes.isEmpty {
            throw Failure(.usage, "\"\(file)\" is empty.", advice: "Installed, it masks one of the same name.")
        }
        if bytes.count > Manifest.maximumSize {
            throw Failure(
                .usage, "\"\(file)\" has \(bytes.count) bytes, and a manifest has \(Manifest.maximumSize) at most.")
        }
        do {
            let dictionary = try Manifest.dictionary(ofPropertyList: bytes)
            return (try Manifest(dictionary), dictionary.keys.map(\.string).sorted())
        } catch {
            throw Failure(.usage, "\"\(file)\" is refused: \(error).")
        }
    }

    /// Refuses probable misspellings. The service ignores unknown keys, because a file may have other keys of Apple's.
    private func checkSpelling(_ keys: [String]) throws {
        for key in keys where !Manifest.keys.contains(key) {
            let meant = Manifest.keys.min { Spelling.distance(key, $0) < Spelling.distance(key, $1) }
            guard let meant, key.hasPrefix(Manifest.ownPrefix) || Spelling.distance(key, meant) <= 2 else { continue }
            throw Failure(
                .usage, "\"\(file)\": there is no key \(Output.quoted(key)).", advice: "Did you mean \"\(meant)\"?")
        }
    }

    private func checkPatterns(_ manifest: Manifest) throws {
        for pattern in manifest.localKeys + manifest.ubiquitousDefaults {
            let length = pattern.utf16.count - (KeyPatterns.isPrefix(Text(pattern)) ? 1 : 0)
            let isTooLong = length > Limits.standard.keyLength
            if isTooLong || !KeyPatterns.isLikely(Text(pattern)) {
                throw Failure(
                    .usage, "\"\(file)\": no key goes with \(Output.quoted(pattern)).",
                    advice: isTooLong
                        ? "A key has \(Limits.standard.keyLength) UTF-16 code units at most."
                        : "Write a key, or the beginning of keys and an asterisk.")
            }
        }
        let local = KeyPatterns(manifest.localKeys.map { Text($0) })
        for key in manifest.ubiquitousDefaults {
            guard let pattern = local.pattern(covering: Text(key)) else { continue }
            throw Failure(
                .usage, "\"\(file)\": \(Output.quoted(key)) is said to roam, and to stay on the device.",
                advice: "Remove \(Output.quoted(key)) there, or \(Output.quoted(pattern.string)) from the local keys.")
        }
    }

    private func checkGroups(_ manifest: Manifest) throws {
        for group in manifest.groups {
            guard let problem = DomainName.problem(group) else { continue }
            throw Failure(.usage, "\"\(file)\": \(Output.quoted(group)) is not a domain: \(problem).")
        }
    }

    /// Refuses keys that roam in no store, and an identifier that the service gives to nobody once it is installed.
    private func checkStore(of manifest: Manifest) throws {
        if manifest.identifier == nil, !manifest.ubiquitousDefaults.isEmpty {
            throw Failure(
                .usage, "\"\(file)\": keys roam in the app's store, and the manifest declares none.",
                advice: "Declare a store identifier, or leave out the keys.")
        }
        let name = file.split(separator: "/").last.map(String.init) ?? ""
        let directories = InstalledManifests.directories(in: Variable.value(of:))
        if let rival = InstalledManifests.rivals(of: manifest, named: name, in: directories).first {
            throw Failure(
                .usage, "\"\(file)\": \(rival) declares the same identifier for an app of another team.",
                advice: "With both installed, the service gives the store to neither. Choose another identifier.")
        }
    }

    /// Returns what would make the service refuse the file if it were installed as it is.
    private func remark() throws -> String? {
        if !file.hasSuffix(".plist") {
            return "\(file): \(localized("only files whose names end in .plist are read"))"
        }
        do {
            _ = try ManifestFile.read(file, trusting: isUsers ? geteuid() : ManifestFile.serviceUser)
            if !isUsers { try ManifestFile.checkServiceCanRead(file) }
            if isSystems { try ManifestFile.checkServiceCanReach(file) }
            return nil
        } catch {
            if access(file, F_OK) != 0 { return nil }
            if isUsers || isSystems { throw Failure(.usage, "\"\(file)\" is refused: \(error).") }
            return localized(
                "Install it so that root owns it, and only root may write to it (install -m 644): now \(error)")
        }
    }

    private var directory: String {
        let path = file.hasPrefix("/") ? file : FileName.currentDirectory + "/" + file
        return FileName.resolved(String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]))
    }

    private var isSystems: Bool {
        InstalledManifests.systemDirectories.map(FileName.resolved).contains(directory)
    }

    /// Whether a service that this user alone runs would read the file.
    private var isUsers: Bool {
        InstalledManifests.userDirectory(in: Variable.value(of:)).map { directory == FileName.resolved($0) } ?? false
    }

}

extension ManifestFile {
    static var serviceUser: uid_t { getpwnam("_ubiquitous-store").map { $0.pointee.pw_uid } ?? 0 }

    /// Checks that the service's user can read a file. Root, who runs the check, can read it in any case.
    static func checkServiceCanRead(_ path: String) throws(Manifest.Refusal) {
        var status = stat()
        guard stat(path, &status) == 0, status.st_uid != serviceUser || serviceUser == 0 else { return }
        guard status.st_mode & S_IROTH == 0 else { return }
        throw Manifest.Refusal(key: nil, reason: "the service's user can't read it; chmod 644 fixes that")
    }

    /// Checks that the service's user can enter the directories on the way to an installed file.
    static func checkServiceCanReach(_ path: String) throws(Manifest.Refusal) {
        var directory = ""
        for name in FileName.resolved(path).split(separator: "/").dropLast() {
            directory += "/\(name)"
            var status = stat()
            guard stat(directory, &status) == 0, status.st_uid != serviceUser || serviceUser == 0 else { continue }
            if status.st_mode & S_IXOTH != 0 { continue }
            throw Manifest.Refusal(
                key: nil, reason: "the service's user can't enter \(directory); chmod 755 fixes that")
        }
    }
}

extension Manifest {
    fileprivate var lines: [(String, String)] {
        let store = identifier ?? "none; nothing of the app is synced"
        var lines = [("Store   ", store), ("App     ", applicationIdentifier)]
        if let teamIdentifier { lines.append(("Team    ", teamIdentifier)) }
        lines += groups.map { ("Group   ", $0) } + localKeys.map { ("Local   ", $0) }
        lines += ubiquitousDefaults.map { ("Roams   ", $0) }
        return lines + executables.map { ("Program ", $0) }
    }

    fileprivate var json: Value {
        var object: [Text: Value] = [
            "application": .string(Text(applicationIdentifier)), "groups": Self.array(groups),
            "local-keys": Self.array(localKeys), "executables": Self.array(executables),
            "ubiquitous-defaults": Self.array(ubiquitousDefaults),
        ]
        object["identifier"] = identifier.map { .string(Text($0)) }
        object["team"] = teamIdentifier.map { .string(Text($0)) }
        return .dictionary(object)
    }

    private static func array(_ strings: [String]) -> Value { .array(strings.map { .string(Text($0)) }) }
}
