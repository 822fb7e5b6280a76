// SPDX-License-Identifier: Apache-2.0

package import SDBus
internal import StoreBus

/// The data of all users, for root.
@BusActor
package struct AdministrationObject: ServiceObject {
    package static let interface = BusNames.administrationInterface
    /// The way to it.
    package let connection: ServiceConnection
    /// Where it is.
    package let path = BusNames.managerPath

    /// The object of a connection's service.
    package init(_ connection: ServiceConnection) { self.connection = connection }

    /// `ListData`: that which is in use, and that which was set aside.
    package func data() async throws -> [UserDataDescription] {
        try await call("ListData") {
            try $0.append(0 as UInt64)
        } decode: {
            try $0.readDictionaries().map {
                UserDataDescription(
                    name: $0.string("name"), uid: UInt32(clamping: $0.integer("uid")), user: $0.string("user"),
                    isSetAside: $0.boolean("set-aside"), isCopy: $0.boolean("copy"),
                    time: UInt64(clamping: $0.integer("set-aside-usec")),
                    bytes: Int(clamping: $0.integer("bytes")))
            }
        }
    }

    /// `BackUp`: copies all of it.
    /// - Returns: the directory of the copy.
    package func backUp(timeout: Duration) async throws -> String {
        try await call("BackUp", timeout: timeout) {
            try $0.append(0 as UInt64)
        } decode: {
            try $0.readString()
        }
    }

    /// `Adopt`: makes data that was set aside that of a user.
    /// - Parameter replacing: also if that user has data.
    package func adopt(_ name: String, by uid: UInt32, replacing: Bool) async throws {
        try await call("Adopt") {
            try $0.append(name)
            try $0.append(uid)
            try $0.append(replacing ? 0x1 : 0 as UInt64)
        }
    }

    /// `Delete`: removes data, or a copy.
    /// - Parameter forced: also if it is that of a user of this machine.
    package func delete(_ name: String, forced: Bool = false) async throws {
        try await call("Delete") {
            try $0.append(name)
            try $0.append(forced ? 0x1 : 0 as UInt64)
        }
    }

    /// `StateDirectory`.
    package func stateDirectory() async throws -> String { try await allProperties().string("StateDirectory") }
}

/// A user's data, as `ListData` has it.
package struct UserDataDescription: Sendable, Equatable {
    /// What `Adopt` and `Delete` call it.
    package let name: String
    /// Whose it is, or was.
    package let uid: UInt32
    /// The name that its user had; "": nobody knows.
    package let user: String
    /// Whether it is set aside.
    package let isSetAside: Bool
    /// Whether that is because a backup was restored.
    package let isCopy: Bool
    /// When it was, in microseconds since 1970; 0: nobody knows.
    package let time: UInt64
    /// What it takes of the disk.
    package let bytes: Int
}
