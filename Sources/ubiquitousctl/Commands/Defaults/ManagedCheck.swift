// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Glibc
internal import ManagedDefaults

/// `managed check FILE…`: says whether files of managed settings are right, as the service reads them.
enum ManagedCheck {
    static func run(_ words: [String]) throws {
        guard words.first == "check", words.count > 1 else {
            throw DefaultsWords.usage("\"managed check\" takes files")
        }
        var refused = 0
        for path in words.dropFirst() {
            do {
                let bytes = try ManifestFile.read(path, trusting: geteuid(), maximumSize: ManagedFile.maximumSize)
                _ = try ManagedFile(propertyList: bytes)
                Output.print("\(path): right")
            } catch {
                Output.complain("\(path): \(error)")
                refused += 1
            }
        }
        if refused > 0 { throw Ending(outcome: .usage) }
    }
}
