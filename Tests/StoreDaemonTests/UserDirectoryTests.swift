// SPDX-License-Identifier: Apache-2.0

import Files
import Foundation
import Testing

@testable import StoreDaemon

struct UserDirectoryTests {
    /// Returns the owner of user 1000's data, by a directory service that knows this user by two names.
    private func owner(_ recorded: String?, _ now: UserEntry.Answer) -> RecordedOwner {
        RecordedOwner(of: 1000, recorded: recorded) { key in
            guard case .name(let name) = key else { return now }
            if name == "slow" { return .unknown }
            let uid: UInt32? = ["ada": 1000, "ada@corp.example": 1000, "eve": 1001][name]
            return uid.map { .known(UserEntry(name: name, uid: $0)) } ?? .nobody
        }
    }

    private func owner(_ recorded: String?, _ now: String) -> RecordedOwner {
        owner(recorded, .known(UserEntry(name: now, uid: 1000)))
    }

    @Test func `data under another form of its user's name stays that user's`() {
        #expect(owner("ada", "ada@corp.example") == .user(name: "ada@corp.example"))
        #expect(owner("ada@corp.example", "ada") == .user(name: "ada"))
    }

    @Test func `data of a name that leads elsewhere or nowhere is its former user's`() {
        #expect(owner("eve", "ada") == .former("eve", now: "ada"))
        #expect(owner("bob", "ada") == .former("bob", now: "ada"))
        #expect(owner("e\u{301}", "\u{E9}") == .former("e\u{301}", now: "\u{E9}"))
    }

    @Test func `a name that isn't known says nothing`() {
        #expect(owner("bob", .nobody) == .nameless && owner("bob", .unknown) == .perhapsUser)
        #expect(owner(nil, "ada") == .user(name: "ada"))
    }

    @Test func `where it is open whose a name is, nobody gets the data`() {
        #expect(owner("slow", "ada") == .perhapsFormer && owner("bob", .busy) == .perhapsFormer)
        #expect(owner(nil, .busy) == .perhapsUser)
    }

    @Test func `data that is set aside twice in a second has no time to come`() throws {
        let state = FileManager.default.temporaryDirectory.appending(path: "state-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: state) }
        let now = UInt64(Date().timeIntervalSince1970 * 1_000_000)
        for _ in 0..<5 {
            try FileManager.default.createDirectory(atPath: "\(state)/u7", withIntermediateDirectories: true)
            _ = try UserDirectory(of: 7, in: state).setAside(as: "ada", time: now)
        }
        let times = try UserData.all(in: state).map(\.time)
        let end = UInt64(Date().timeIntervalSince1970 * 1_000_000)
        #expect(times.count == 5 && times.allSatisfy { $0 > 0 && $0 <= end })
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
