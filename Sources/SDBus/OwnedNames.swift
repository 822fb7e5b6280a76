// SPDX-License-Identifier: Apache-2.0

/// The names that a connection owns on its bus, and what the bus says about other names.
@BusActor
package final class OwnedNames {
    private let reference: ConnectionReference
    /// The matches that report the loss of each name.
    private var matches: [String: Slot] = [:]
    /// Called when the bus takes a requested name away.
    package var onLost: (@BusActor () -> Void)?

    init(_ reference: ConnectionReference) {
        self.reference = reference
    }

    /// Ends with the connection, which was closed.
    func close() {
        matches = [:]
        onLost = nil
    }

    /// Makes this connection the owner of a name. If it is taken away, ``onLost`` is called.
    ///
    /// - Parameters:
    ///   - mayBeReplaced: whether a connection that asks for that, and may own the name, can take it away. Otherwise only
    ///     the bus can.
    ///   - isGone: whether to take the name away from its owner, if that may be replaced.
    /// - Throws: ``BusError``: AddressInUse, naming the owner, if the name is taken; the bus's error if it refuses.
    ///
    /// The corresponding C function is ``sd_bus_request_name_async``, with the flags `SD_BUS_NAME_ALLOW_REPLACEMENT` and
    /// `SD_BUS_NAME_REPLACE_EXISTING`.
    package func request(
        _ name: String, mayBeReplaced: Bool = false, replacingIf isGone: (Credentials) -> Bool = { _ in false }
    ) async throws {
        let flags = RequestName.doNotQueue | (mayBeReplaced ? RequestName.allowReplacement : 0)
        // Before the name is ours, so that its loss isn't missed.
        matches[name] = try await lossMatch(name)
        do {
            if try await isOwner(of: name, flags) { return }
            let owner = await owner(of: name)
            if let credentials = owner.credentials, isGone(credentials),
                try await isOwner(of: name, flags | RequestName.replaceExisting)
            {
                return
            }
            throw BusError.nameTaken("The name \(name) is taken by \(owner.text).")
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
    package func release(_ name: String) async throws {
        matches[name] = nil
        _ = try await callBus("ReleaseName", { try $0.append(name) }, { try $0.readUInt32() })
    }

    /// Returns whether the bus starts a name's owner when it is called; false if the bus doesn't tell.
    package func isActivatable(_ name: String) async -> Bool {
        let names = try? await callBus("ListActivatableNames", { _ in }, { try $0.readStrings() })
        return names?.contains(name) ?? false
    }

    /// The numbers in the D-Bus Specification.
    private enum RequestName {
        static let (allowReplacement, replaceExisting, doNotQueue): (UInt32, UInt32, UInt32) = (1, 2, 4)
        static let primaryOwner: UInt32 = 1
        static let alreadyOwner: UInt32 = 4
    }

    /// Requests a name, and returns whether it is this connection's now.
    private func isOwner(of name: String, _ flags: UInt32) async throws -> Bool {
        let answer = try await callBus(
            "RequestName",
            { call in
                try call.append(name)
                try call.append(flags)
            },
            { try $0.readUInt32() }
        )
        return answer == RequestName.primaryOwner || answer == RequestName.alreadyOwner
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
    private func owner(of name: String) async -> (text: String, credentials: Credentials?) {
        guard let owner = try? await callBus("GetNameOwner", { try $0.append(name) }, { try $0.readString() }) else {
            return ("someone", nil)
        }
        let credentials = try? await callBus(
            "GetConnectionCredentials",
            { try $0.append(owner) },
            { try Credentials(reading: $0) }
        )
        guard let credentials else { return (owner, nil) }
        let process = credentials.pid.map(String.init) ?? "unknown"
        return ("\(owner) (user \(credentials.uid), process \(process))", credentials)
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
