// SPDX-License-Identifier: Apache-2.0

// What the bus says of its users and connections. dbus-daemon is asked for each connection (GetConnectionStats);
// dbus-broker has one answer for all of them (GetStats), and answers the other call with Failed, "Unimplemented
// functionality". A bus whose policy forbids the calls answers with an error too, or without what is looked for.

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

    /// How many bytes the bus holds for a connection, which has not read them.
    ///
    /// - Throws: ``BusError`` if the bus doesn't say.
    public func undeliveredBytes(to name: String) async throws -> Int {
        if !tellsOfAllOnly, let bytes = try? await bytesAlone(of: name) { return bytes }
        guard let bytes = try await bytesAmongAll(of: name) else {
            throw BusError.notSupported("The bus doesn't say what it holds for a connection.")
        }
        tellsOfAllOnly = true
        return bytes
    }

    /// What dbus-daemon says.
    private func bytesAlone(of name: String) async throws -> Int? {
        try await call(
            Self.bus, Self.busPath, Self.statistics, "GetConnectionStats", build: { try $0.append(name) },
            decode: { reply in
                var bytes: Int?
                try reply.readDictionary { name in
                    guard name == "OutgoingBytes" else { return try reply.skip() }
                    try reply.enterVariant()
                    bytes = Int(try reply.readUInt32())
                    try reply.exitContainer()
                }
                return bytes
            })
    }

    /// What dbus-broker says.
    private func bytesAmongAll(of name: String) async throws -> Int? {
        try await statistic("PeerAccounting", ofEach: "sa{sv}a{su}") { account in
            let isMeant = try account.readString() == name
            var bytes: Int?
            try account.skip()
            try account.readDictionary("su") { name in
                let count = try account.readUInt32()
                if name == "OutgoingBytes" { bytes = Int(count) }
            }
            return isMeant ? bytes : nil
        }
    }

    /// Looks through the records of a part of the answer.
    ///
    /// - Parameters:
    ///   - record: the signature of what is in one.
    ///   - read: reads one to its end; `nil` if it isn't the one that is meant.
    private func statistic(
        _ part: String, ofEach record: String, _ read: @escaping @BusActor (Message) throws -> Int?
    ) async throws -> Int? {
        try await call(Self.bus, Self.busPath, Self.statistics, "GetStats") { reply in
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

    private static let (bus, busPath) = ("org.freedesktop.DBus", "/org/freedesktop/DBus")
    private static let statistics = bus + ".Debug.Stats"
}
