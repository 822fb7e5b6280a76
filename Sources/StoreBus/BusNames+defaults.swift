// SPDX-License-Identifier: Apache-2.0

public import SDBus

/// The names of defaults domains on the bus.
extension BusNames {
    /// The interface of one user's domains.
    public static let defaultsInterface = "org.example.UbiquitousStore.Defaults"
    /// The interface of one layer of a domain.
    public static let domainInterface = "org.example.UbiquitousStore.Domain"

    /// Domains are below it: a root of their own, since an app's store may have any name.
    public static let defaultsRoot = "/org/example/UbiquitousStore/defaults/v1"

    /// The object of a user's domains; `nil` is an alias of the caller's own.
    public static func defaultsPath(uid: UInt32?) -> String {
        "\(defaultsRoot)/\(uid.map { "u\($0)" } ?? "self")"
    }

    /// The object of a domain, or of its layer for this host; a `uid` of `nil` is an alias of the caller's own.
    public static func domainPath(uid: UInt32?, domain: String, isHost: Bool = false) throws(BusError) -> String {
        try ObjectPath.encode(prefix: defaultsPath(uid: uid), label: domain) + (isHost ? hostSuffix : "")
    }

    /// What the path of a domain's layer for this host has after the domain's.
    public static let hostSuffix = "/host"
}
