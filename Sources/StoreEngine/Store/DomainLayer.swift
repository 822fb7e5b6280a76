// SPDX-License-Identifier: Apache-2.0

// Layers of defaults domains are stores too: `!d/<domain>`, and `!h/<domain>` for this host only. All their keys are
// local, so they are in the device-local replica, which a change of account doesn't touch. They have limits of their
// own, and are not synced.

internal import GRDB
internal import PropertyList

/// A layer of a defaults domain.
package struct DomainLayer: Sendable {
    /// The name of the domain.
    package let domain: String
    /// Whether the layer is for this host only.
    package let isHost: Bool

    /// Makes a layer of a domain.
    package init(of domain: String, isHost: Bool) { (self.domain, self.isHost) = (domain, isHost) }

    /// Returns the layer that is the store with an identifier; `nil` for an app's store.
    package init?(_ identifier: String) {
        // Compares bytes, because Swift may join the first character of a domain's name with the one before it.
        guard let isHost = [false, true].first(where: { identifier.utf8.starts(with: Self.prefix(isHost: $0).utf8) })
        else { return nil }
        let domain = identifier.utf8.dropFirst(Self.prefix(isHost: isHost).utf8.count)
        self.init(of: String(Substring(domain)), isHost: isHost)
    }

    /// The identifier of the store.
    package var identifier: String { Self.prefix(isHost: isHost) + domain }

    private static func prefix(isHost: Bool) -> String { isHost ? "!h/" : "!d/" }
}

extension Store {
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
