// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import ArgumentParser
internal import Glibc
internal import PropertyList

/// `manifest`.
struct ManifestCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "manifest",
        abstract: "Looks at manifests, by which apps declare their stores.",
        subcommands: [ManifestCheckCommand.self])
}

/// `manifest check`. It is done without the service, for builds of packages.
struct ManifestCheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Finds out whether the service would take a manifest, and what it declares.",
        discussion: """
            The service takes an installed manifest only if it is owned by root and nobody else may write to it: that \
            is said, and is no error here. Ends with 2 if there is anything else to refuse.
            """)

    @Flag(help: "Print an object of JSON.")
    var json = false

    @Argument(help: "The manifest: an XML or binary property list.", completion: .file(extensions: ["plist"]))
    var file: String

    func run() throws {
        let bytes = try WholeFile.read(file)
        let manifest = try read(bytes)
        if json { return Output.print(json: manifest.json) }
        let style = Style(for: 1)
        for (name, text) in manifest.lines { Output.print(style.dim(name) + Output.printable(text)) }
        if let remark = try remark() { Output.remark(remark) }
    }

    private func read(_ bytes: [UInt8]) throws -> Manifest {
        if bytes.isEmpty {
            throw Failure(.usage, "\"\(file)\" is empty", advice: "Installed, it masks one of the same name.")
        }
        if bytes.count > Manifest.maximumSize {
            throw Failure(
                .usage, "\"\(file)\" has \(bytes.count) bytes, and a manifest has \(Manifest.maximumSize) at most")
        }
        do {
            return try Manifest(propertyList: bytes)
        } catch {
            throw Failure(.usage, "\"\(file)\" is refused: \(error)")
        }
    }

    private func remark() throws -> String? {
        if !file.hasSuffix(".plist") { return "Only files whose names end in .plist are read" }
        var status = stat()
        guard stat(file, &status) == 0, status.st_uid != 0 || status.st_mode & (S_IWGRP | S_IWOTH) != 0 else {
            return nil
        }
        return "Install it so that it is root's, and only root may write to it (install -m 644)"
    }
}

extension Manifest {
    fileprivate var lines: [(String, String)] {
        var lines = [("Store  ", identifier), ("App    ", applicationIdentifier)]
        if let teamIdentifier { lines.append(("Team   ", teamIdentifier)) }
        lines += groups.map { ("Group  ", $0) } + localKeys.map { ("Local  ", $0) }
        return lines + executables.map { ("Program", " " + $0) }
    }

    fileprivate var json: Value {
        var object: [Text: Value] = [
            "identifier": .string(Text(identifier)), "application": .string(Text(applicationIdentifier)),
            "groups": Self.array(groups), "local-keys": Self.array(localKeys), "executables": Self.array(executables),
        ]
        object["team"] = teamIdentifier.map { .string(Text($0)) }
        return .dictionary(object)
    }

    private static func array(_ strings: [String]) -> Value { .array(strings.map { .string(Text($0)) }) }
}
