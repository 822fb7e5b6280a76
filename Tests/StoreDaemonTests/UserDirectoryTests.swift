// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import StoreDaemon

struct UserDirectoryTests {
    /// Returns the former owner of user 1000's data, by a directory service that knows this user by two names.
    private func formerOwner(_ recorded: String?, _ now: String?) throws -> String? {
        try UserDirectory.formerOwner(of: 1000, recorded: recorded, now: now) { (name) throws(UserName.Late) in
            if name == "slow" { throw UserName.Late() }
            return ["ada": 1000, "ada@corp.example": 1000, "eve": 1001][name]
        }
    }

    @Test func `data under another form of its user's name stays that user's`() throws {
        #expect(try formerOwner("ada", "ada@corp.example") == nil)
        #expect(try formerOwner("ada@corp.example", "ada") == nil)
    }

    @Test func `data of a name that leads elsewhere or nowhere is its former user's`() throws {
        #expect(try formerOwner("eve", "ada") == "eve")
        #expect(try formerOwner("bob", "ada") == "bob")
    }

    @Test func `a name that isn't known says nothing`() throws {
        #expect(try formerOwner("bob", nil) == nil)
        #expect(try formerOwner(nil, "ada") == nil)
    }

    @Test func `where it is open whose a name is, nobody gets the data`() {
        #expect(throws: UserName.Late.self) { try formerOwner("slow", "ada") }
    }
}
