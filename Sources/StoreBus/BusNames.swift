// SPDX-License-Identifier: Apache-2.0

package import SDBus

/// The names that the service and its clients use on the bus. `dbus/org.example.UbiquitousStore.xml` defines them.
package enum BusNames {
    /// The service's name on the bus.
    package static let service = "org.example.UbiquitousStore"

    /// The interface of the service's own object for everybody.
    package static let managerInterface = "org.example.UbiquitousStore.Manager"
    /// The interface of the service's own object for root.
    package static let administrationInterface = "org.example.UbiquitousStore.Administration"
    /// The interface of a user's account.
    package static let accountInterface = "org.example.UbiquitousStore.Account"
    /// The interface of an app's store.
    package static let storeInterface = "org.example.UbiquitousStore"

    /// The path of the service's own object.
    package static let managerPath = "/org/example/UbiquitousStore"
    /// The path below which accounts and stores are.
    package static let usersPath = "/org/example/UbiquitousStore/v1"

    /// Returns the path of a user's account; `nil` for the alias of the caller's own.
    package static func accountPath(uid: UInt32?) -> String {
        "\(usersPath)/\(uid.map { "u\($0)" } ?? "self")"
    }

    /// Returns the path of a user's store; a `uid` of `nil` is for the alias of the caller's own.
    /// - Throws: `BusError` (InvalidArgs) if the identifier contains U+0000.
    package static func storePath(uid: UInt32?, identifier: String) throws(BusError) -> String {
        try ObjectPath.encode(prefix: accountPath(uid: uid), label: identifier)
    }
}

extension BusError {
    /// Makes one of the service's own errors.
    package static func store(_ code: StoreErrorCode, _ message: String) -> BusError {
        BusError(name: code.name, message: message)
    }
}

/// The last words of the service's own error names.
package enum StoreErrorCode: String, CaseIterable, Sendable {
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

    /// The error's full name.
    package var name: String { "org.example.UbiquitousStore.Error.\(rawValue)" }
}
