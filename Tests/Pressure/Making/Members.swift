// SPDX-License-Identifier: Apache-2.0

internal import StoreBus

/// A method that can be called.
struct Member {
    let interface: String
    let name: String
    let signature: String

    static let all =
        of(
            BusNames.managerInterface,
            [
                ("OpenStore", "sa{sv}"), ("ListStores", "t"), ("RemoveStore", "st"), ("Identify", ""),
                ("RegisterManifest", "aya{sv}"), ("Reload", ""),
            ])
        + of(
            BusNames.accountInterface,
            [
                ("SignIn", "sa{sv}"), ("SignOut", "a{sv}"), ("SyncNow", "t"), ("Resolve", "s"), ("SetPaused", "b"),
                ("SetStoreSynchronized", "sb"), ("ListDevices", ""), ("RenameDevice", "ss"), ("ForgetDevice", "s"),
                ("CheckBackend", "sa{sv}"), ("Subscribe", "t"), ("Unsubscribe", ""),
            ])
        // Twice, because most of the service's work is there.
        + stores + stores
        + of("org.freedesktop.DBus.Properties", [("Get", "ss"), ("GetAll", "s"), ("Set", "ssv")])
        + of("org.freedesktop.DBus.Introspectable", [("Introspect", "")])
        + of("org.freedesktop.DBus.Peer", [("Ping", ""), ("GetMachineId", "")])
        + of("org.freedesktop.DBus.ObjectManager", [("GetManagedObjects", "")])

    private static let stores = of(
        BusNames.storeInterface,
        [
            ("GetValue", "s"), ("GetValues", "as"), ("GetSnapshot", "tt"), ("SetValue", "sv"), ("RemoveValue", "s"),
            ("Apply", "a{sv}asa{sv}"), ("Synchronize", "t"), ("GetHistory", "st"), ("Subscribe", "t"),
            ("Unsubscribe", ""),
        ])

    private static func of(_ interface: String, _ members: [(String, String)]) -> [Member] {
        members.map { Member(interface: interface, name: $0.0, signature: $0.1) }
    }
}
