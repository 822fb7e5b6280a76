// SPDX-License-Identifier: Apache-2.0

package import Replication

/// The names of the layout.
package enum BlobName {
    /// Markers of accounts.
    package static let markers = "a"
    /// Heads.
    package static let heads = "h"
    /// Segments.
    package static let segments = "s"

    /// No folder of ours has more names. What is beyond need not be listed.
    package static let mostListed = 1 << 16

    /// Heads of more devices than anybody has. What is beyond is not read.
    static let mostHeads = 4096

    /// Whether a folder holds more names than ours ever do: then these need not be all.
    static func areTooMany(_ listings: [BlobListing]) -> Bool { listings.count >= mostListed }

    package static func marker(_ account: Bits128) -> String { "\(markers)/\(account)" }
    package static func head(_ origin: Origin) -> String { "\(heads)/\(origin)" }
    package static func segment(_ name: Bits128) -> String { "\(segments)/\(name)" }

    /// A file that was not whole yet when its writer was stopped: a dot, the name that it was to have, a random
    /// number. Those of sync tools look otherwise.
    package static func isTemporary(_ name: String) -> Bool {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0].isEmpty && parts[3] == "tmp"
            && [parts[1], parts[2]].allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(\.isLowerHexDigit) }
    }

    /// Whether a name may be that of a blob, or of what is going to be one: whatever else lies in a folder, however
    /// much it is, is not worth remembering.
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

    /// Whether a name has control characters, line feeds among them: neither we nor sync tools give such names.
    package static func hasControls(_ name: String) -> Bool { name.utf8.contains { $0 < 0x20 || $0 == 0x7F } }

    /// The origin that a name in the folder of heads begins with: a head's, or a copy's that some sync tool made of
    /// it when it found two versions. All of them put something behind the name.
    package static func origin(inHeadName name: String) -> Origin? {
        let digits = name.utf8.prefix(16)
        guard digits.count == 16, digits.allSatisfy(\.isLowerHexDigit) else { return nil }
        return Origin(Substring(digits))
    }
}
