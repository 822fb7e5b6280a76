// SPDX-License-Identifier: Apache-2.0

package import Replication

/// The names of files in a remote (docs/remote-format.md, "Layout").
package enum BlobName {
    /// The folder of the accounts' markers.
    package static let markers = "a"
    /// The folder of the heads.
    package static let heads = "h"
    /// The folder of the segments.
    package static let segments = "s"

    /// The maximum number of names that a storage has to list. No folder of an account has more.
    package static let mostListed = 1 << 16

    /// The maximum number of heads that are read. Nobody has so many devices.
    static let mostHeads = 4096

    /// Whether a folder may hold more names than these, because the listing has reached its limit.
    static func areTooMany(_ listings: [BlobListing]) -> Bool { listings.count >= mostListed }

    package static func marker(_ account: Bits128) -> String { "\(markers)/\(account)" }
    package static func head(_ origin: Origin) -> String { "\(heads)/\(origin)" }
    package static func segment(_ name: Bits128) -> String { "\(segments)/\(name)" }

    /// Whether a name is that of an unfinished file: a dot, the final name, a dot, a random number, `.tmp`. Sync tools
    /// name theirs otherwise.
    package static func isTemporary(_ name: String) -> Bool {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0].isEmpty && parts[3] == "tmp"
            && [parts[1], parts[2]].allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(\.isLowerHexDigit) }
    }

    /// Whether a name may be that of a blob or of an unfinished one. A storage need not list other files, however many
    /// there are.
    package static func mayBeOurs(_ name: some Sequence<UInt8>) -> Bool {
        var (digits, isFirst) = (0, true)
        for byte in name {
            if isFirst, byte == UInt8(ascii: ".") { return true }
            isFirst = false
            guard byte.isLowerHexDigit else { return false }
            digits += 1
            if digits == 16 { return true }
        }
        return false
    }

    /// Whether a name has control characters, such as line feeds. Neither this service nor sync tools give such names.
    package static func hasControls(_ name: String) -> Bool { name.utf8.contains { $0 < 0x20 || $0 == 0x7F } }

    /// Returns the origin with which the name of a head begins, or of a copy of one; `nil` for other names. A sync tool
    /// makes a copy when it finds two versions, and appends something to the name.
    package static func origin(inHeadName name: String) -> Origin? {
        let digits = name.utf8.prefix(16)
        guard digits.count == 16, digits.allSatisfy(\.isLowerHexDigit) else { return nil }
        return Origin(Substring(digits))
    }
}
