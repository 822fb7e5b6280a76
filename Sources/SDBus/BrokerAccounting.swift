// SPDX-License-Identifier: Apache-2.0

// What dbus-broker says of its users and connections, in one answer for all of them (GetStats). Other buses, and one
// whose policy forbids it, answer with an error, or without what is looked for.

extension BusConnection {
    /// How many bytes dbus-broker would still keep for a user's connections; `nil` if the bus doesn't know the user.
    ///
    /// - Throws: ``BusError`` if the bus doesn't say.
    public func allowance(of uid: UInt32) async throws -> Int? {
        try await statistics("UserAccounting") { reply in
            var left: Int?
            try reply.enterContainer("a", "(ua(suu)a{ua{su}})")
            while let account = try reply.readUserAccount() {
                if account.uid == uid { left = account.bytes }
            }
            try reply.exitContainer()
            return left
        }
    }

    /// How many bytes dbus-broker holds for a connection, which has not read them.
    ///
    /// - Throws: ``BusError`` if the bus doesn't say.
    public func undeliveredBytes(to name: String) async throws -> Int {
        let bytes = try await statistics("PeerAccounting") { reply in
            var bytes: Int?
            try reply.enterContainer("a", "(sa{sv}a{su})")
            while let account = try reply.readPeerAccount() {
                if account.name == name { bytes = account.outgoing }
            }
            try reply.exitContainer()
            return bytes
        }
        guard let bytes else { throw BusError.notSupported("The bus doesn't say what it holds for a connection.") }
        return bytes
    }

    private func statistics(
        _ part: String, _ read: @escaping @BusActor (Message) throws -> Int?
    ) async throws -> Int? {
        let name = "org.freedesktop.DBus"
        return try await call(name, "/org/freedesktop/DBus", name + ".Debug.Stats", "GetStats") { reply in
            var found: Int?
            try reply.readDictionary { name in
                guard name == "org.bus1.DBus.Debug.Stats." + part else { return try reply.skip() }
                try reply.enterVariant()
                found = try read(reply)
                try reply.exitContainer()
            }
            return found
        }
    }
}

extension Message {
    /// A user, and what is left of the user's bytes; `nil` at the end of the array.
    fileprivate func readUserAccount() throws(BusError) -> (uid: UInt32, bytes: Int?)? {
        guard try enterContainer("r", "ua(suu)a{ua{su}}") else { return nil }
        let uid = try readUInt32()
        var bytes: Int?
        try enterContainer("a", "(suu)")
        while try enterContainer("r", "suu") {
            let (name, left, _) = (try readString(), try readUInt32(), try readUInt32())
            if name == "Bytes" { bytes = Int(left) }
            try exitContainer()
        }
        try exitContainer()
        try skip()
        try exitContainer()
        return (uid, bytes)
    }

    /// A connection, and how much is on its way to it; `nil` at the end of the array.
    fileprivate func readPeerAccount() throws(BusError) -> (name: String, outgoing: Int?)? {
        guard try enterContainer("r", "sa{sv}a{su}") else { return nil }
        let name = try readString()
        try skip()
        var outgoing: Int?
        try enterContainer("a", "{su}")
        while try enterContainer("e", "su") {
            let (name, count) = (try readString(), try readUInt32())
            if name == "OutgoingBytes" { outgoing = Int(count) }
            try exitContainer()
        }
        try exitContainer()
        try exitContainer()
        return (name, outgoing)
    }
}
