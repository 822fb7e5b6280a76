// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import StoreDaemon

struct UserDirectoryTests {
    /// Returns the former owner of user 1000's data, by a directory service that knows this user by two names.
    private func formerOwner(_ recorded: String?, _ now: String?) throws -> String? {
        try UserDirectory.formerOwner(of: 1000, recorded: recorded, now: now) { (name) throws(UserName.Unknown) in
            if name == "slow" { throw UserName.Unknown() }
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
        #expect(throws: UserName.Unknown.self) { try formerOwner("slow", "ada") }
    }

    @Test func `data that can't be opened in its new place goes back, and what was there is there again`() throws {
        let state = FileManager.default.temporaryDirectory.appending(path: "state-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: state) }
        let name = "u7.ada.1763800000"
        for directory in ["u7", name] {
            try FileManager.default.createDirectory(
                atPath: "\(state)/\(directory)", withIntermediateDirectories: true)
            try Data().write(to: URL(filePath: "\(state)/\(directory)/of-\(directory)"))
        }
        let (user, data) = (UserDirectory(of: 7, in: state), try UserData.named(name, in: state))
        func present() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: user.path) }
        #expect(throws: CancellationError.self) {
            try user.adopt(data, time: 1_763_900_000_000_000) {
                #expect(try present() == ["of-\(name)"])
                throw CancellationError()
            }
        }
        #expect(try present() == ["of-u7"])
        #expect(try Set(FileManager.default.contentsOfDirectory(atPath: state)) == ["u7", name])
        try user.adopt(data, time: 1_763_900_000_000_000) {}
        #expect(try present() == ["of-\(name)"])
    }
}
