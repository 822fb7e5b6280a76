// SPDX-License-Identifier: Apache-2.0

/// The names that a connection owns on its bus, and what the bus says about other names.
@BusActor
public final class OwnedNames {
    private let reference: ConnectionReference
    /// The matches that report the loss of each name.
    private var matches: [String: Slot] = [:]
    /// Called when the bus takes a requested name away.
    public var onLost: (@BusActor () -> Void)?

    init(_ reference: ConnectionReference) {
        self.reference = reference
    }

    /// Ends with the connection, which was closed.
    func close() {
        matches = [:]
        onLost = nil
    }

    /// Makes this connection the owner of a name. Only the bus can take it away, and then ``onLost`` is called.
    ///
    /// - Throws: ``BusError``: AddressInUse, naming the owner, if the name is taken; the bus's error if it refuses.
    ///
    /// The corresponding C function is ``sd_bus_request_name_async``, with flags 0.
    public func request(_ name: String) async throws {
        // Before the name is ours, so that its loss isn't missed.
        matches[name] = try await lossMatch(name)
        do {
            let answer = try await callBus(
                "RequestName",
                { call in
                    try call.append(name)
                    try call.append(RequestName.doNotQueue)
                },
                { try $0.readUInt32() }
            )
            guard answer == RequestName.primaryOwner || answer == RequestName.alreadyOwner else {
                throw BusError.nameTaken("The name \(name) is taken by \(await owner(of: name)).")
            }
        } catch {
            matches[name] = nil
            throw error
        }
    }

    /// Gives up a name; ``onLost`` isn't called.
    ///
    /// - Throws: ``BusError`` if the connection is closed, or the bus refuses or doesn't answer.
    ///
    /// The corresponding C function is ``sd_bus_release_name_async``.
    public func release(_ name: String) async throws {
        matches[name] = nil
        _ = try await callBus("ReleaseName", { try $0.append(name) }, { try $0.readUInt32() })
    }

    /// Returns whether the bus starts a name's owner when it is called; false if the bus doesn't tell.
    public func isActivatable(_ name: String) async -> Bool {
        let names = try? await callBus("ListActivatableNames", { _ in }, { try $0.readStrings() })
        return names?.contains(name) ?? false
    }

    /// The numbers in the D-Bus Specification.
    private enum RequestName {
        static let doNotQueue: UInt32 = 4
        static let primaryOwner: UInt32 = 1
        static let alreadyOwner: UInt32 = 4
    }

    private func lossMatch(_ name: String) async throws -> Slot {
        let rule = """
            type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',\
            interface='org.freedesktop.DBus',member='NameLost',arg0='\(name)'
            """
        guard !name.contains("'") else { throw BusError.invalidArguments("\(name) is not a bus name.") }
        return try await connection.addMatch(rule) { [reference] _ in reference.connection?.names.onLost?() }
    }

    /// Describes the owner of a name.
    private func owner(of name: String) async -> String {
        guard let owner = try? await callBus("GetNameOwner", { try $0.append(name) }, { try $0.readString() }) else {
            return "someone"
        }
        let credentials = try? await callBus(
            "GetConnectionCredentials",
            { try $0.append(owner) },
            { try Credentials(reading: $0) }
        )
        guard let credentials else { return owner }
        return "\(owner) (user \(credentials.uid), process \(credentials.pid.map(String.init) ?? "unknown"))"
    }

    private var connection: BusConnection {
        get throws {
            guard let connection = reference.connection else {
                throw BusError.disconnected("The connection was closed.")
            }
            return connection
        }
    }

    private func callBus<Value: Sendable>(
        _ member: String,
        _ build: (Message) throws -> Void,
        _ decode: @escaping @BusActor (Message) throws -> Value
    ) async throws -> Value {
        let name = "org.freedesktop.DBus"
        return try await connection.call(name, "/org/freedesktop/DBus", name, member, build: build, decode: decode)
    }
}
