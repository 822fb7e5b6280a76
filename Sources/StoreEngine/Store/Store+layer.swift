// SPDX-License-Identifier: Apache-2.0

// Layers of defaults domains are stores too: `!d/<domain>`, and `!h/<domain>` for this host only. All their keys are
// local, so they are in the device-local replica, which a change of account doesn't touch. They have limits of their
// own, and are not synced.

internal import GRDB
internal import PropertyList

extension Store {
    /// Returns the identifier of a domain's layer.
    package static func layerIdentifier(ofDomain domain: String, isHost: Bool) -> String {
        (isHost ? hostPrefix : domainPrefix) + domain
    }

    /// Returns the domain of a layer's identifier, and whether it is for this host only; `nil` for an app's store.
    package static func layer(_ identifier: String) -> (domain: String, isHost: Bool)? {
        // Compares bytes, because Swift may join the first character of a domain's name with the one before it.
        for (prefix, isHost) in [(domainPrefix, false), (hostPrefix, true)]
        where identifier.utf8.starts(with: prefix.utf8) {
            return (String(Substring(identifier.utf8.dropFirst(prefix.utf8.count))), isHost)
        }
        return nil
    }

    private static let domainPrefix = "!d/"
    private static let hostPrefix = "!h/"

    /// Returns whether an identifier is a layer's. Layers never leave the device.
    static func isLayer(_ identifier: String) -> Bool { identifier.utf8.first == UInt8(ascii: "!") }

    /// Whether the store is a layer of a defaults domain.
    package var isLayer: Bool { Self.isLayer(identifier) }
}

extension UserDatabase {
    /// Returns about how many bytes the values of a layer take, without reading them.
    package func valueBytes(ofLayer identifier: String) throws(EngineError) -> Int {
        try read { db in
            try Int.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT coalesce(sum(max(8, length(value))), 0) FROM (
                            SELECT value, max(change.id)
                            FROM store JOIN replica ON replica.store = store.id
                                JOIN change ON \(ChangeID.isOf("replica.id"))
                            WHERE store.identifier = ? GROUP BY replica.id, key)
                        """),
                arguments: [identifier]) ?? 0
        }
    }
}

extension LocalKeys {
    /// Every key is local.
    static let all = LocalKeys(["*"])
}
