// SPDX-License-Identifier: Apache-2.0

/// The names that a connection owns on its bus, and others' as far as the bus tells.
@BusActor
public final class OwnedNames {
    private let reference: ConnectionReference
    /// Tell of the loss of each name.
    private var matches: [String: Slot] = [:]
    /// Called when the bus takes a requested name away.
    public var onLost: (@BusActor () -> Void)?

    init(_ reference: ConnectionReference) {
        self.reference = reference
    }

    /// The connection was closed.
    func close() {
        matches = [:]
        onLost = nil
    }

    /// Makes this connection the owner of a name; nobody can take it away without the bus's help (``onLost``).
    ///
    /// - Throws: ``BusError``: AddressInUse, saying who has it, if the name is taken; what the bus says if it refuses.
    ///
    /// The corresponding C function is ``sd_bus_request_name_async``, with flags 0.
    public func request(_ name: String) async throws {
        // Before the name is ours, so that no loss is missed.
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

    /// Gives a name back; ``onLost`` isn't called.
    ///
    /// The corresponding C function is ``sd_bus_release_name_async``.
    public func release(_ name: String) async throws {
        matches[name] = nil
        _ = try await callBus("ReleaseName", { try $0.append(name) }, { try $0.readUInt32() })
    }

    /// Whether the bus starts a name's owner when it is called; false if the bus doesn't tell.
    public func isActivatable(_ name: String) async -> Bool {
        let names = try? await callBus("ListActivatableNames", { _ in }, { try $0.readStrings() })
        return names?.contains(name) ?? false
    }

    /// Numbers of the D-Bus Specification.
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
        guard !name.contains("'") else { throw BusError.invalidArguments("\(name) is no bus name.") }
        return try await connection.addMatch(rule) { [reference] _ in reference.connection?.names.onLost?() }
    }

    /// Who has a name, in words.
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
