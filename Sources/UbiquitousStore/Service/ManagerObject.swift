// SPDX-License-Identifier: Apache-2.0

package import PropertyList
package import SDBus
internal import StoreBus

/// The service's own object.
@BusActor
package struct ManagerObject: ServiceObject {
    package static let interface = BusNames.managerInterface
    /// The connection to the service.
    package let connection: ServiceConnection
    /// The object's path.
    package let path = BusNames.managerPath

    /// `OpenStore`: finds a store.
    ///
    /// - Parameter identifier: empty for this program's default store.
    package func openStore(_ identifier: String) async throws -> OpenedStore {
        try await call("OpenStore") {
            try $0.append(identifier)
            try $0.appendDictionary {}
        } decode: { answer in
            let path = try answer.readString()
            let info = try answer.readDictionary()
            return OpenedStore(
                path: path, identifier: info.string("identifier"),
                isInitialSyncDone: info.boolean("initial-sync-done"))
        }
    }

    /// `ListStores`: the stores that hold something, sorted by user and identifier.
    ///
    /// - Parameters:
    ///   - everybody: whether to list the stores of all users, which only root may do.
    ///   - onlyExcluded: whether to list those that are excluded from sync instead.
    package func stores(
        ofEverybody everybody: Bool = false, onlyExcluded: Bool = false
    ) async throws -> [ListedStore] {
        try await call("ListStores") {
            try $0.append((everybody ? 0x1 : 0) | (onlyExcluded ? 0x2 : 0) as UInt64)
        } decode: { answer in
            var stores: [ListedStore] = []
            try answer.enterContainer("a", "(uso)")
            while try answer.enterContainer("r", "uso") {
                stores.append(
                    ListedStore(
                        uid: try answer.readUInt32(), identifier: try answer.readString(),
                        path: try answer.readString()))
                try answer.exitContainer()
            }
            return stores
        }
    }

    /// `ListUsers`: the numbers of the users that have data on this device; only for root.
    package func users() async throws -> [UInt32] {
        try await call("ListUsers") {
            try $0.append(0 as UInt64)
        } decode: { answer in
            var users: [UInt32] = []
            try answer.enterContainer("a", "(uo)")
            while try answer.enterContainer("r", "uo") {
                users.append(try answer.readUInt32())
                _ = try answer.readString()
                try answer.exitContainer()
            }
            return users
        }
    }

    /// `RemoveStore`: deletes a store from this device.
    ///
    /// - Parameters:
    ///   - everywhere: also remove its values on every device of the account.
    ///   - keepsPending: fail if changes of the store are pending in the present account.
    ///   - discardsChanges: also remove changes that other accounts of this device do not have yet.
    package func removeStore(
        _ identifier: String, everywhere: Bool = false, keepingPending keepsPending: Bool = false,
        discardingChanges discardsChanges: Bool = false, onlyChecking isCheck: Bool = false
    ) async throws {
        try await call("RemoveStore") {
            try $0.append(identifier)
            let flags: [(Bool, UInt64)] = [
                (everywhere, 0x1), (discardsChanges, 0x2), (isCheck, 0x4), (keepsPending, 0x8),
            ]
            try $0.append(flags.reduce(0) { $1.0 ? $0 | $1.1 : $0 })
        }
    }

    /// `Identify`: how the service identifies this program.
    package func identify() async throws -> CallerDescription {
        try await call("Identify") { _ in
        } decode: { answer in
            let identity = try answer.readDictionary()
            return CallerDescription(
                uid: UInt32(clamping: identity.integer("uid")), engine: identity.string("engine"),
                applicationIdentifier: identity.string("app-id"),
                defaultIdentifier: identity.string("default-identifier"), entitled: identity.strings("entitled"),
                mayOpenAny: identity.boolean("undeclared"),
                folderRoots: identity["folder-roots"] == nil ? nil : identity.strings("folder-roots"))
        }
    }

    /// `RegisterManifest`: declares stores for the caller's user.
    ///
    /// - Returns: the identifiers that it declares.
    package func registerManifest(_ propertyList: [UInt8]) async throws -> [String] {
        try await call("RegisterManifest") {
            try $0.append(bytes: propertyList)
            try $0.appendDictionary {}
        } decode: {
            try $0.readStrings()
        }
    }

    /// `Reload`: reads the manifests and the settings again.
    package func reload() async throws {
        try await call("Reload")
    }

    /// Reads the service's properties.
    package func properties() async throws -> ServiceDescription {
        let properties = try await allProperties()
        return ServiceDescription(
            version: properties.string("Version"), features: properties.strings("Features"),
            limits: Limits(properties["Limits"]), settingsErrors: properties.strings("SettingsErrors"),
            warnings: properties.strings("Warnings"))
    }
}

/// The result of `OpenStore`.
package struct OpenedStore: Sendable, Equatable {
    /// The store's object.
    package let path: String
    /// Its identifier.
    package let identifier: String
    /// Whether the first download of an account is complete.
    package let isInitialSyncDone: Bool
}

/// A store in `ListStores`.
package struct ListedStore: Sendable, Equatable {
    /// The owner's user id.
    package let uid: UInt32
    /// Its identifier.
    package let identifier: String
    /// The store's object.
    package let path: String
}

/// The result of `Identify`.
package struct CallerDescription: Sendable, Equatable {
    /// The user that the bus reports.
    package let uid: UInt32
    /// `host`, `flatpak` or `unknown`.
    package let engine: String
    /// The app, or "".
    package let applicationIdentifier: String
    /// The store that `OpenStore` finds for "", or "".
    package let defaultIdentifier: String
    /// The identifiers that the caller may open.
    package let entitled: [String]
    /// Whether the caller may open any identifier.
    package let mayOpenAny: Bool
    /// The folders below which an account may be; `nil` if the service doesn't say.
    package let folderRoots: [String]?
}

/// The properties of the service's own object.
package struct ServiceDescription: Sendable, Equatable {
    /// The version, such as "0.1.0".
    package let version: String
    /// Words for what this build can do, such as the schemes of its backends.
    package let features: [String]
    /// The limits of every store.
    package let limits: Limits
    /// The errors in the service's settings, as sentences.
    package let settingsErrors: [String]
    /// What an administrator has provided and the service can't use, as sentences.
    package let warnings: [String]
}
