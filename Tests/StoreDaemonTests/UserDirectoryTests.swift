// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import StoreDaemon

struct UserDirectoryTests {
    /// A directory service that knows the user 1000 as "ada" and by the name of its domain.
    private func formerOwner(_ recorded: String?, _ now: String?) -> String? {
        UserDirectory.formerOwner(of: 1000, recorded: recorded, now: now) { name in
            ["ada": 1000, "ada@corp.example": 1000, "eve": 1001][name]
        }
    }

    @Test func `data under another form of its user's name stays that user's`() {
        #expect(formerOwner("ada", "ada@corp.example") == nil)
        #expect(formerOwner("ada@corp.example", "ada") == nil)
    }

    @Test func `data of a name that leads elsewhere or nowhere is its former user's`() {
        #expect(formerOwner("eve", "ada") == "eve")
        #expect(formerOwner("bob", "ada") == "bob")
    }

    @Test func `a name that isn't known says nothing`() {
        #expect(formerOwner("bob", nil) == nil)
        #expect(formerOwner(nil, "ada") == nil)
    }
}
