// SPDX-License-Identifier: Apache-2.0

package import SDBus
internal import StoreBus

/// The data of all users, for root.
@BusActor
package struct AdministrationObject: ServiceObject {
    package static let interface = BusNames.administrationInterface
    /// The connection to the service.
    package let connection: ServiceConnection
    /// The object's path.
    package let path = BusNames.managerPath

    /// Makes the object of a connection's service.
    package init(_ connection: ServiceConnection) { self.connection = connection }

    /// `ListData`: lists the data of all users, in use and set aside.
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

    /// `BackUp`: copies the data of all users.
    /// - Returns: the directory of the copy.
    package func backUp(timeout: Duration) async throws -> String {
        try await call("BackUp", timeout: timeout) {
            try $0.append(0 as UInt64)
        } decode: {
            try $0.readString()
        }
    }

    /// `Adopt`: gives data that was set aside to a user.
    /// - Parameter replacing: also if that user has values or an account already, which are then set aside.
    /// - Parameter names: the names of all data before.
    /// - Returns: the name of the data that was set aside; `nil` if there was none.
    package func adopt(
        _ name: String, by uid: UInt32, replacing: Bool, besides names: Set<String>
    ) async throws -> String? {
        try await call("Adopt") {
            try $0.append(name)
            try $0.append(uid)
            try $0.append(replacing ? 0x1 : 0 as UInt64)
        }
        // To list all data reads the status of each file.
        guard names.contains("u\(uid)") else { return nil }
        return try? await data().first { $0.uid == uid && $0.isSetAside && !names.contains($0.name) }?.name
    }

    /// `Adopt`, which only checks whether a user has values or an account already.
    package func isFree(_ uid: UInt32) async throws -> Bool {
        do {
            try await call("Adopt") {
                try $0.append("")
                try $0.append(uid)
                try $0.append(0x2 as UInt64)
            }
            return true
        } catch let error as UbiquitousStoreError where error.code == .conflict { return false }
    }

    /// `Delete`: removes data, or a copy that `BackUp` made.
    /// - Parameter forced: also if it belongs to a user of this machine.
    package func delete(_ name: String, forced: Bool = false) async throws {
        try await call("Delete") {
            try $0.append(name)
            try $0.append(forced ? 0x1 : 0 as UInt64)
        }
    }

    /// Reads `StateDirectory`, the directory of the service's data.
    package func stateDirectory() async throws -> String { try await allProperties().string("StateDirectory") }
}

/// A user's data, as `ListData` describes it.
package struct UserDataDescription: Sendable, Equatable {
    /// The name that `Adopt` and `Delete` take.
    package let name: String
    /// The number of the user whose data it is or was.
    package let uid: UInt32
    /// The user's name; "" if unknown.
    package let user: String
    /// Whether it is set aside.
    package let isSetAside: Bool
    /// Whether it was set aside because a backup was restored.
    package let isCopy: Bool
    /// When it was set aside, in microseconds since 1970; 0 if unknown.
    package let time: UInt64
    /// The space that it takes on the disk, in bytes.
    package let bytes: Int

    /// Whether it was set aside because its user id is another user's now, or the same user's under another name.
    package var isSetAsideForName: Bool { isSetAside && !isCopy }
}
