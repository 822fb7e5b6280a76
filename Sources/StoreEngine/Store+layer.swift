// SPDX-License-Identifier: Apache-2.0

// Layers of defaults domains are stores as well: `!d/<domain>`, and `!h/<domain>` for this host only. All their keys
// are local, so they are in the overlay, which accounts leave alone; they have limits of their own, and no part in the
// sync.

internal import PropertyList

extension Store {
    /// The identifier of a domain's layer.
    public static func layerIdentifier(ofDomain domain: String, isHost: Bool) -> String {
        (isHost ? hostPrefix : domainPrefix) + domain
    }

    /// The domain whose layer an identifier names, and which layer it is; `nil`: it names an app's store.
    public static func layer(_ identifier: String) -> (domain: String, isHost: Bool)? {
        for (prefix, isHost) in [(domainPrefix, false), (hostPrefix, true)] where identifier.hasPrefix(prefix) {
            return (String(identifier.dropFirst(prefix.count)), isHost)
        }
        return nil
    }

    private static let domainPrefix = "!d/"
    private static let hostPrefix = "!h/"

    /// Whether an identifier is a layer's. Nothing of these ever leaves the device.
    static func isLayer(_ identifier: String) -> Bool { identifier.utf8.first == UInt8(ascii: "!") }

    /// Whether it is a layer of a defaults domain.
    public var isLayer: Bool { Self.isLayer(identifier) }
}

extension LocalKeys {
    /// Every key is local.
    static let all = LocalKeys(["*"])
}
