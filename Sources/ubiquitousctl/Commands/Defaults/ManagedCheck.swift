// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Glibc
internal import ManagedDefaults
internal import PropertyList

/// `managed check FILE…`: checks files of managed settings, as the service reads them. Also refuses probable mistakes
/// that the service would accept, and notes what has no effect and names that only another machine may know.
enum ManagedCheck {
    /// - Parameter json: whether to print an array of JSON.
    static func run(_ words: [String], json: Bool = false) throws {
        guard words.first == "check", words.count > 1 else {
            throw DefaultsWords.usage("\"managed check\" takes files")
        }
        var results: [Value] = []
        var isRight = true
        for path in words.dropFirst() {
            var result: [Text: Value] = ["file": .string(Text(path))]
            let name = path.isEmpty ? Output.quoted(path) : path
            do {
                let notes = try check(path)
                if !notes.isEmpty { result["notes"] = .strings(notes) }
                if !json {
                    Output.print("\(name): right")
                    for note in notes { Output.remark(Sentence(verbatim: "\(name): \(note)")) }
                }
            } catch {
                if !json { Output.complain("\(name): \(error)") }
                result["error"] = .string(Text("\(error)"))
                isRight = false
            }
            results.append(.dictionary(result))
        }
        if json { Output.print(json: .array(results)) }
        if !isRight { throw ReportedFailure(outcome: .usage) }
    }

    /// - Returns: what may be wrong in the file, though it is valid.
    private static func check(_ path: String) throws -> [String] {
        let bytes = try ManifestFile.read(path, trusting: geteuid(), maximumSize: ManagedFile.maximumSize)
        // Elsewhere it is still to be installed, by a program that sets the mode.
        if FileName.resolved(path).contains("/ubiquitous-store/managed.d/") {
            try ManifestFile.checkServiceCanRead(path)
            if !path.hasSuffix(".plist") {
                throw Manifest.Refusal(key: nil, reason: "only files whose names end in .plist are read")
            }
        }
        if bytes.isEmpty {
            throw Manifest.Refusal(key: nil, reason: "it is empty; installed, it masks one of the same name")
        }
        let file = try ManagedFile(propertyList: bytes)
        for (name, domains) in [("Locked", file.locked), ("Ubiquitous", file.ubiquitous)] {
            for (domain, patterns) in domains.sorted(by: { $0.key.string < $1.key.string }) {
                guard let pattern = patterns.first(where: { !KeyPatterns.isLikely($0) }) else { continue }
                throw Manifest.Refusal(
                    key: "\(name) → \(domain.string)",
                    reason: "no key goes with \(Output.quoted(pattern.string)); write a key, or the beginning of keys "
                        + "and an asterisk")
            }
        }
        return notes(on: file)
    }

    private static func notes(on file: ManagedFile) -> [String] {
        let parts = file.ignoredParts.sorted().map {
            "\($0) has no effect; the parts Forced and Set-Once of a profile have one"
        }
        if file.isForNobody {
            return parts + ["it applies to nobody; name users or groups, or leave out Users and Groups for all users"]
        }
        let users = (file.users ?? []).filter { LocalUser.uid(named: $0) == nil }.map { "user \(Output.quoted($0))" }
        let groups = (file.groups ?? []).filter { getgrnam($0) == nil }.map { "group \(Output.quoted($0))" }
        return parts
            + (users + groups).map {
                "this machine knows no \($0); check the spelling, unless the file is for other machines"
            }
    }
}
