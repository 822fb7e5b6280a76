// SPDX-License-Identifier: Apache-2.0

public import SDBus

/// The names that both ends of the bus use; `dbus/org.example.UbiquitousStore.xml` says what they mean.
public enum BusNames {
    /// The service's name on the bus.
    public static let service = "org.example.UbiquitousStore"

    /// The interface of the service's own object.
    public static let managerInterface = "org.example.UbiquitousStore.Manager"
    /// The interface for root, of the service's own object.
    public static let administrationInterface = "org.example.UbiquitousStore.Administration"
    /// The interface of one user's account.
    public static let accountInterface = "org.example.UbiquitousStore.Account"
    /// The interface of one app's store.
    public static let storeInterface = "org.example.UbiquitousStore"

    /// The service's own object.
    public static let managerPath = "/org/example/UbiquitousStore"
    /// Accounts and stores are below it.
    public static let usersPath = "/org/example/UbiquitousStore/v1"

    /// The object of a user's account; `nil` is an alias of the caller's own.
    public static func accountPath(uid: UInt32?) -> String {
        "\(usersPath)/\(uid.map { "u\($0)" } ?? "self")"
    }

    /// The object of a user's store; a `uid` of `nil` is an alias of the caller's own.
    public static func storePath(uid: UInt32?, identifier: String) throws(BusError) -> String {
        try ObjectPath.encode(prefix: accountPath(uid: uid), label: identifier)
    }
}

extension BusError {
    /// An error of the service's own, by the last word of its name.
    public static func store(_ code: StoreErrorCode, _ message: String) -> BusError {
        BusError(name: code.name, message: message)
    }
}

/// The last words of the service's own error names.
public enum StoreErrorCode: String, CaseIterable, Sendable {
    case noSuchKey = "NoSuchKey"
    case invalidKey = "InvalidKey"
    case keyTooLong = "KeyTooLong"
    case invalidValue = "InvalidValue"
    case depthExceeded = "DepthExceeded"
    case quotaExceeded = "QuotaExceeded"
    case notEntitled = "NotEntitled"
    case identityUnknown = "IdentityUnknown"
    case ambiguousIdentity = "AmbiguousIdentity"
    case noSuchStore = "NoSuchStore"
    case conflict = "Conflict"
    case notSignedIn = "NotSignedIn"
    case noAccount = "NoAccount"
    case backendUnavailable = "BackendUnavailable"
    case backendAuthenticationFailed = "BackendAuthenticationFailed"
    case backendFull = "BackendFull"
    case backendUnsupported = "BackendUnsupported"
    case remoteFormatTooNew = "RemoteFormatTooNew"
    case remoteReset = "RemoteReset"
    case keyNeeded = "KeyNeeded"
    case keyWrong = "KeyWrong"
    case busy = "Busy"
    case corrupt = "Corrupt"

    /// The whole name.
    public var name: String { "org.example.UbiquitousStore.Error.\(rawValue)" }
}
