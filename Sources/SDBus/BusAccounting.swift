// SPDX-License-Identifier: Apache-2.0

// What the bus reports on its users and connections. dbus-daemon reports on one connection (GetConnectionStats).
// dbus-broker reports on all of them (GetStats), and answers the other call with Failed, "Unimplemented functionality".
// A bus whose policy forbids the calls answers with an error too, or leaves out the numbers.

extension BusConnection {
    /// Returns how many bytes dbus-broker would still hold for a user's connections; `nil` if it doesn't know the user.
    ///
    /// - Throws: ``BusError`` if the bus doesn't tell.
    package func allowance(of uid: UInt32) async throws -> Int? {
        var bytes: Int?
        try await readStatistic("UserAccounting", ofEach: "ua(suu)a{ua{su}}") { account in
            let isMeant = try account.readUInt32() == uid
            try account.enterContainer("a", "(suu)")
            while try account.enterContainer("r", "suu") {
                let (name, left, _) = (try account.readString(), try account.readUInt32(), try account.readUInt32())
                if isMeant, name == "Bytes" { bytes = Int(left) }
                try account.exitContainer()
            }
            try account.exitContainer()
            try account.skip()
        }
        return bytes
    }

    /// Returns how many bytes the bus holds for a connection that has not read them.
    ///
    /// - Throws: ``BusError`` if the bus doesn't tell.
    package func undeliveredBytes(to name: String) async throws -> Int {
        if !reportsOnlyTotals, let bytes = try? await bytesAlone(of: name) { return bytes }
        guard let bytes = try await accounting.bytes(of: name) else {
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
    func bytes(of names: Set<String>) async throws -> (bytes: [String: Int], time: UInt64) {
        var bytes: [String: Int] = [:]
        let time = try await readStatistic("PeerAccounting", ofEach: "sa{sv}a{su}") { account in
            let peer = try account.readString()
            try account.skip()
            try account.readDictionary("su") { name in
                let count = try account.readUInt32()
                if name == "OutgoingBytes", names.contains(peer) { bytes[peer] = Int(count) }
            }
        }
        return (bytes, time)
    }

    /// Reads the records of a part of dbus-broker's answer.
    ///
    /// - Parameters:
    ///   - record: the signature of a record's contents.
    ///   - read: reads a record to its end.
    /// - Returns: the microseconds that reading the answer took.
    @discardableResult
    private func readStatistic(
        _ part: String, ofEach record: String, _ read: @escaping @BusActor (Message) throws -> Void
    ) async throws -> UInt64 {
        try await call(Self.bus, Self.busPath, Self.statistics, "GetStats") { reply in
            let start = EventLoop.now
            try reply.readDictionary { name in
                guard name == "org.bus1.DBus.Debug.Stats." + part else { return try reply.skip() }
                try reply.enterVariant()
                try reply.enterContainer("a", "(\(record))")
                while try reply.enterContainer("r", record) {
                    try read(reply)
                    try reply.exitContainer()
                }
                try reply.exitContainer()
                try reply.exitContainer()
            }
            return EventLoop.now - start
        }
    }

    static let (bus, busPath) = ("org.freedesktop.DBus", "/org/freedesktop/DBus")
    private static let statistics = bus + ".Debug.Stats"
}
