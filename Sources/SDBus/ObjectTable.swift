// SPDX-License-Identifier: Apache-2.0

/// The interfaces that are registered at a connection, for calls that libsystemd can't be asked about again: those that
/// had to wait. They are answered as libsystemd would have.
@BusActor
final class ObjectTable {
    /// Leads to a registration without keeping it: it takes itself out when it ends.
    private struct Reference {
        unowned let registration: Registration
    }

    private var references: [ObjectIdentifier: Reference] = [:]

    private var registrations: [Registration] { references.values.map(\.registration) }

    func insert(_ registration: Registration) {
        references[ObjectIdentifier(registration)] = Reference(registration: registration)
    }

    func remove(_ registration: Registration) { references[ObjectIdentifier(registration)] = nil }

    /// Has a method of a registered interface handle its call, or answers the reading of properties.
    ///
    /// - Returns: false if the call is none of these.
    func dispatch(_ message: Message, from peer: Peer, on connection: BusConnection) -> Bool {
        registrations.contains { $0.dispatch(message, from: peer) }
            || answerReading(of: message, for: peer, on: connection)
    }

    /// Answers Get and GetAll of `org.freedesktop.DBus.Properties`, by the D-Bus specification.
    ///
    /// - Returns: false if the call is none of these.
    private func answerReading(of message: Message, for peer: Peer, on connection: BusConnection) -> Bool {
        guard message.interface == "org.freedesktop.DBus.Properties", let path = message.path,
            message.member == "Get" && message.signature == "ss"
                || message.member == "GetAll" && message.signature == "s"
        else { return false }
        let call = MethodCall(message, peer: peer, on: connection, table: nil)
        let all = registrations
        defer { for registration in all { registration.forgetObject() } }
        do {
            let found = try all.filter { try $0.finds(path, for: peer) }
            guard !found.isEmpty else { throw BusError.unknownObject(path) }
            try message.rewind()
            let name = try message.readString()
            if message.member == "Get" {
                let property = try message.readString()
                try call.reply { reply in
                    for registration in found where registration.interface == name {
                        if try registration.append(property: property, to: reply, for: peer) { return }
                    }
                    throw BusError.unknownProperty(property)
                }
            } else {
                // Without a name, the properties of all interfaces.
                let named = found.filter { name.isEmpty || $0.interface == name }
                guard !named.isEmpty else { throw BusError.unknownInterface(name) }
                try call.reply { reply in
                    try reply.container("a", "{sv}") {
                        for registration in named { try registration.appendProperties(to: reply, for: peer) }
                    }
                }
            }
        } catch {
            call.fail(BusError(error))
        }
        return true
    }
}
