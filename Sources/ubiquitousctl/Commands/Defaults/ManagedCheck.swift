// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Glibc
internal import ManagedDefaults
internal import PropertyList

/// `managed check FILE…`: checks files of managed settings, as the service reads them. Also refuses probable mistakes
/// that the service would accept.
enum ManagedCheck {
    static func run(_ words: [String]) throws {
        guard words.first == "check", words.count > 1 else {
            throw DefaultsWords.usage("\"managed check\" takes files")
        }
        var refused = 0
        for path in words.dropFirst() {
            do {
                try check(path)
                Output.print("\(path): right")
            } catch {
                Output.complain("\(path): \(error)")
                refused += 1
            }
        }
        if refused > 0 { throw ReportedFailure(outcome: .usage) }
    }

    private static func check(_ path: String) throws {
        let bytes = try ManifestFile.read(path, trusting: geteuid(), maximumSize: ManagedFile.maximumSize)
        // Elsewhere it is still to be installed, by a program that sets the mode.
        if FileName.resolved(path).contains("/ubiquitous-store/managed.d/") {
            try ManifestFile.checkServiceCanRead(path)
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
    }
}
