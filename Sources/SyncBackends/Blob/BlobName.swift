// SPDX-License-Identifier: Apache-2.0

internal import StoreEngine

/// The names of the layout.
enum BlobName {
    /// Markers of accounts.
    static let markers = "a"
    /// Heads.
    static let heads = "h"
    /// Segments.
    static let segments = "s"

    static func marker(_ account: Bits128) -> String { "\(markers)/\(account)" }
    static func head(_ origin: Origin) -> String { "\(heads)/\(origin)" }
    static func segment(_ name: Bits128) -> String { "\(segments)/\(name)" }

    /// The origin that a name in the folder of heads begins with: a head's, or a copy's that some sync tool made of
    /// it when it found two versions. All of them put something behind the name.
    static func origin(inHeadName name: String) -> Origin? {
        let digits = name.utf8.prefix(16)
        guard digits.count == 16, digits.allSatisfy(\.isLowerHexDigit) else { return nil }
        return Origin(Substring(digits))
    }
}
