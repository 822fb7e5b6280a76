// SPDX-License-Identifier: Apache-2.0

// What dbus-broker says of its users and connections, in one answer for all of them (GetStats). Other buses, and one
// whose policy forbids it, answer with an error, or without what is looked for.

extension BusConnection {
    /// How many bytes dbus-broker would still keep for a user's connections; `nil` if the bus doesn't know the user.
    ///
    /// - Throws: ``BusError`` if the bus doesn't say.
    public func allowance(of uid: UInt32) async throws -> Int? {
        try await statistic("UserAccounting", ofEach: "ua(suu)a{ua{su}}") { account in
            let isMeant = try account.readUInt32() == uid
            var bytes: Int?
            try account.enterContainer("a", "(suu)")
            while try account.enterContainer("r", "suu") {
                let (name, left, _) = (try account.readString(), try account.readUInt32(), try account.readUInt32())
                if name == "Bytes" { bytes = Int(left) }
                try account.exitContainer()
            }
            try account.exitContainer()
            try account.skip()
            return isMeant ? bytes : nil
        }
    }

    /// How many bytes dbus-broker holds for a connection, which has not read them.
    ///
    /// - Throws: ``BusError`` if the bus doesn't say.
    public func undeliveredBytes(to name: String) async throws -> Int {
        let bytes = try await statistic("PeerAccounting", ofEach: "sa{sv}a{su}") { account in
            let isMeant = try account.readString() == name
            var bytes: Int?
            try account.skip()
            try account.readDictionary("su") { name in
                let count = try account.readUInt32()
                if name == "OutgoingBytes" { bytes = Int(count) }
            }
            return isMeant ? bytes : nil
        }
        guard let bytes else { throw BusError.notSupported("The bus doesn't say what it holds for a connection.") }
        return bytes
    }

    /// Looks through the records of a part of the answer.
    ///
    /// - Parameters:
    ///   - record: the signature of what is in one.
    ///   - read: reads one to its end; `nil` if it isn't the one that is meant.
    private func statistic(
        _ part: String, ofEach record: String, _ read: @escaping @BusActor (Message) throws -> Int?
    ) async throws -> Int? {
        let name = "org.freedesktop.DBus"
        return try await call(name, "/org/freedesktop/DBus", name + ".Debug.Stats", "GetStats") { reply in
            var found: Int?
            try reply.readDictionary { name in
                guard name == "org.bus1.DBus.Debug.Stats." + part else { return try reply.skip() }
                try reply.enterVariant()
                try reply.enterContainer("a", "(\(record))")
                while try reply.enterContainer("r", record) {
                    found = try read(reply) ?? found
                    try reply.exitContainer()
                }
                try reply.exitContainer()
                try reply.exitContainer()
            }
            return found
        }
    }
}
