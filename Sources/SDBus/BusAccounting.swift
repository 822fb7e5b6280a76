// SPDX-License-Identifier: Apache-2.0

// What the bus reports on its users and connections. dbus-daemon reports on one connection (GetConnectionStats).
// dbus-broker reports on all of them (GetStats), and answers the other call with Failed, "Unimplemented functionality".
// A bus whose policy forbids the calls answers with an error too, or leaves out the numbers.

extension BusConnection {
    /// Returns how many bytes dbus-broker would still hold for a user's connections; `nil` if it doesn't know the user.
    ///
    /// - Throws: ``BusError`` if the bus doesn't tell.
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

    /// Returns how many bytes the bus holds for a connection that has not read them.
    ///
    /// - Throws: ``BusError`` if the bus doesn't tell.
    public func undeliveredBytes(to name: String) async throws -> Int {
        if !reportsOnlyTotals, let bytes = try? await bytesAlone(of: name) { return bytes }
        guard let bytes = try await bytesAmongAll(of: name) else {
            throw BusError.notSupported("The bus doesn't say what it holds for a connection.")
        }
        reportsOnlyTotals = true
        return bytes
    }

    /// Asks dbus-daemon.
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

    /// Asks dbus-broker.
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

    /// Searches the records of a part of dbus-broker's answer.
    ///
    /// - Parameters:
    ///   - record: the signature of a record's contents.
    ///   - read: reads a record to its end; returns `nil` if it is another user's or connection's.
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
