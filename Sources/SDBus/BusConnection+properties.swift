// SPDX-License-Identifier: Apache-2.0

/// Reading properties, for calls that had to wait: they are answered as libsystemd would have.
extension BusConnection {
    /// Answers Get and GetAll of `org.freedesktop.DBus.Properties`, by the D-Bus specification.
    ///
    /// - Returns: false if the call is none of these.
    func answerReading(of message: Message, for peer: Peer) -> Bool {
        guard message.interface == "org.freedesktop.DBus.Properties", let path = message.path,
            message.member == "Get" && message.signature == "ss"
                || message.member == "GetAll" && message.signature == "s"
        else { return false }
        let call = MethodCall(message, peer: peer, on: self, table: nil)
        let all = registrations.values.map(\.registration)
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
