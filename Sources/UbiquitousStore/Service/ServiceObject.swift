// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
package import SDBus

/// An object of the service, through one of its interfaces. Its methods throw ``UbiquitousStoreError``;
/// `dbus/org.example.UbiquitousStore.xml` describes each.
@BusActor
package protocol ServiceObject: Sendable {
    /// The interface's name.
    static var interface: String { get }
    /// The connection to the service.
    var connection: ServiceConnection { get }
    /// The object's path, with the user's number. Signals come from this path.
    var path: String { get }
}

extension ServiceObject {
    /// Calls a method.
    ///
    /// - Parameter timeout: libsystemd's 25 s if `nil`.
    func call<Result: Sendable>(
        _ member: String,
        timeout: Duration? = nil,
        _ build: @BusActor (Message) throws -> Void = { _ in },
        decode: @escaping @BusActor (Message) throws -> Result
    ) async throws -> Result {
        try await connection.call(path, Self.interface, member, timeout: timeout, build: build, decode: decode)
    }

    /// Calls a method without a result.
    func call(
        _ member: String, timeout: Duration? = nil, _ build: @BusActor (Message) throws -> Void = { _ in }
    ) async throws {
        try await call(member, timeout: timeout, build) { _ in }
    }

    /// Returns all properties.
    func allProperties() async throws -> [String: Value] {
        try await connection.properties(path, Self.interface)
    }
}
