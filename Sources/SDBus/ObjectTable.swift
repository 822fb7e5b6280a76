// SPDX-License-Identifier: Apache-2.0

/// The interfaces that are registered on a connection, for calls that had to wait. libsystemd can't be asked about
/// these again, so they are answered here as libsystemd would have.
@BusActor
final class ObjectTable {
    /// Refers to a registration without keeping it. The registration removes itself when it ends.
    private struct Reference {
        unowned let registration: Registration
    }

    private var references: [ObjectIdentifier: Reference] = [:]

    private var registrations: [Registration] { references.values.map(\.registration) }

    func insert(_ registration: Registration) {
        references[ObjectIdentifier(registration)] = Reference(registration: registration)
    }

    func remove(_ registration: Registration) { references[ObjectIdentifier(registration)] = nil }

    /// Lets a registered interface's method handle its call, or answers a call that reads properties, Ping, and a call of
    /// a registered interface that has no such method or object.
    ///
    /// - Returns: false if the call is none of these.
    func dispatch(_ message: Message, from peer: Peer, on connection: BusConnection) -> Bool {
        registrations.contains { $0.dispatch(message, from: peer) }
            || answerReading(of: message, for: peer, on: connection)
            || answerPing(message, from: peer, on: connection)
            || answerMistake(message, from: peer, on: connection)
    }

    private func answerPing(_ message: Message, from peer: Peer, on connection: BusConnection) -> Bool {
        guard message.interface == "org.freedesktop.DBus.Peer", message.member == "Ping",
            message.signature?.isEmpty ?? true
        else { return false }
        let call = MethodCall(message, peer: peer, on: connection, table: nil)
        do { try call.reply { _ in } } catch { call.fail(BusError(error)) }
        return true
    }

    private func answerMistake(_ message: Message, from peer: Peer, on connection: BusConnection) -> Bool {
        guard let interface = message.interface, let member = message.member, let path = message.path else {
            return false
        }
        let known = registrations.filter { $0.interface == interface }
        if known.isEmpty { return false }
        defer { for registration in known { registration.forgetObject() } }
        do {
            let isThere = try known.contains { try $0.finds(path, for: peer) }
            throw isThere
                ? BusError.unknownMethod("Unknown method \(member) or interface \(interface).")
                : BusError.unknownObject(path)
        } catch {
            MethodCall(message, peer: peer, on: connection, table: nil).fail(BusError(error))
        }
        return true
    }

    /// Answers Get and GetAll of `org.freedesktop.DBus.Properties`, following the D-Bus Specification.
    ///
    /// - Returns: false if the call is neither.
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
                // Without a name, these are the properties of all interfaces.
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
