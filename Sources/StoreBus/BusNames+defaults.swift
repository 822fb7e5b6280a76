// SPDX-License-Identifier: Apache-2.0

package import SDBus

/// The names of defaults domains on the bus.
extension BusNames {
    /// The interface of a user's domains.
    package static let defaultsInterface = "org.example.UbiquitousStore.Defaults"
    /// The interface of one layer of a domain.
    package static let domainInterface = "org.example.UbiquitousStore.Domain"

    /// The path below which domains are. It is separate from the users' path, because an app's store may have any name.
    package static let defaultsRoot = "/org/example/UbiquitousStore/defaults/v1"

    /// Returns the path of a user's domains; `nil` for the alias of the caller's own.
    package static func defaultsPath(uid: UInt32?) -> String {
        "\(defaultsRoot)/\(uid.map { "u\($0)" } ?? "self")"
    }

    /// Returns the path of a domain or its layer for this host; a `uid` of `nil` is for the alias of the caller's own.
    /// - Throws: `BusError` (InvalidArgs) if the domain contains U+0000.
    package static func domainPath(uid: UInt32?, domain: String, isHost: Bool = false) throws(BusError) -> String {
        try ObjectPath.encode(prefix: defaultsPath(uid: uid), label: domain) + (isHost ? hostSuffix : "")
    }

    /// What a domain's path ends with for its layer for this host.
    package static let hostSuffix = "/host"
}
