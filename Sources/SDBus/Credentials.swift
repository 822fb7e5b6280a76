// SPDX-License-Identifier: Apache-2.0

/// What the bus knows of a connection. It was recorded when the connection was made, and the bus vouches for it.
package struct Credentials: Sendable, Equatable {
    /// The user's id.
    package var uid: UInt32
    /// The process's id. The process may have ended, and the id may be another's by now.
    package var pid: Int32?
    /// The ids of the user's groups, including the primary one; empty if the bus doesn't tell.
    package var groups: [UInt32]

    /// Makes credentials, for tests and for connections without a bus.
    package init(uid: UInt32, pid: Int32? = nil, groups: [UInt32] = []) {
        self.uid = uid
        self.pid = pid
        self.groups = groups
    }
}

extension Credentials {
    /// Reads the answer to GetConnectionCredentials.
    ///
    /// - Throws: ``BusError`` if it doesn't name the user, because none may be assumed (CVE-2021-3560).
    init(reading reply: Message) throws {
        var uid: UInt32?
        var pid: UInt32?
        var groups: [UInt32] = []
        try reply.readDictionary { key in
            switch key {
            case "UnixUserID": uid = try reply.readVariant("u") { (value) throws(BusError) in try value.readUInt32() }
            case "ProcessID": pid = try reply.readVariant("u") { (value) throws(BusError) in try value.readUInt32() }
            case "UnixGroupIDs":
                groups = try reply.readVariant("au") { (value) throws(BusError) in try value.readUInt32s() }
            default: try reply.skip()
            }
        }
        guard let uid else { throw BusError.accessDenied("The bus doesn't know the caller's user.") }
        self.init(uid: uid, pid: pid.flatMap(Int32.init(exactly:)), groups: groups)
    }
}

extension Message {
    fileprivate func readUInt32s() throws(BusError) -> [UInt32] {
        var numbers: [UInt32] = []
        try enterContainer("a", "u")
        while try !isAtEnd(whole: false) { numbers.append(try readUInt32()) }
        try exitContainer()
        return numbers
    }

    fileprivate func readVariant<Value>(
        _ contents: StaticString,
        _ read: (Message) throws(BusError) -> Value
    ) throws(BusError) -> Value {
        try enterContainer("v", contents)
        let value = try read(self)
        try exitContainer()
        return value
    }
}
