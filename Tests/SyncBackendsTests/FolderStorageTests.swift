// SPDX-License-Identifier: Apache-2.0

import Files
import Foundation
import Glibc
import PropertyList
import Replication
import StoreEngine
import SyncEngine
import Synchronization
import Testing

@testable import BackendSupport
@testable import Blobs
@testable import Folder

@Suite struct FolderStorageTests {
    private let isRoot = geteuid() == 0

    private func makeStorage(_ path: String, _ access: FolderAccess? = nil) throws -> FolderStorage {
        FolderStorage(try FolderURL("folder://" + path), access: access ?? .own(uid: geteuid()))
    }

    private func error(_ body: () async throws -> Void) async -> RemoteError.Code? {
        do { try await body() } catch { return (error as? RemoteError)?.code }
        return nil
    }

    // MARK: Addresses

    @Test(arguments: [
        ("folder:///home/ada/Sync", "/home/ada/Sync"), ("FOLDER:///a%20b%2Fc//", "/a b/c"),
        ("folder:///%C3%A9%23%3F%25", "/é#?%"),
    ])
    func `an address is a path`(url: String, path: String) throws {
        #expect(try FolderURL(url).path == path)
    }

    @Test(arguments: [
        "", "folder", "folder:", "folder:/a", "folder://host/a", "folder://localhost/a", "folder://u@/a", "file:///a",
        "folder:///a?b", "folder:///a#b", "folder:///a%", "folder:///a%0", "folder:///a%zz", "folder:///a%+1",
        "folder:///a%00b", "folder:///%ff", "folder:///", "folder:////", "folder:///%2F", "webdav://a",
    ])
    func `what is no address of a folder is refused`(url: String) {
        #expect { try FolderURL(url) } throws: { ($0 as? RemoteError)?.code == .unsupported }
    }

    // MARK: Files

    @Test func `a file that has rested has a version, which another one does not have`() async throws {
        let place = try Place()
        let late = FolderStorage(
            try FolderURL("folder://" + place.path),
            access: .own(uid: geteuid()),
            now: { time(nil) + 3 }
        )
        _ = try await late.check(creatingFolder: false)
        let name = "h/0123456789abcdef"
        try await late.put(name, [4])
        let version = try #require(try await late.list("h").first?.version)
        #expect(try await late.get(name, limit: 10, unless: nil) == .content([4], version: version))
        #expect(try await late.get(name, limit: 10, unless: version) == .unchanged)
        // A second write may come within one tick of the filesystem's clock, but is another file.
        try await late.put(name, [5])
        #expect(try await late.get(name, limit: 10, unless: version) != .unchanged)
    }

    @Test func `a file is written, replaced, listed and removed`() async throws {
        let place = try Place()
        // However long it takes, the files are as new as they were when they were written.
        let start = time(nil)
        let storage = FolderStorage(
            try FolderURL("folder://" + place.path), access: .own(uid: geteuid()), now: { start })
        _ = try await storage.check(creatingFolder: false)
        #expect(try await storage.list("h") == [])
        #expect(try await storage.get("h/0123456789abcdef", limit: 10, unless: nil) == .absent)
        try await storage.delete("h/0123456789abcdef")
        try await storage.put("h/0123456789abcdef", [1, 2, 3])
        try await storage.put("h/0123456789abcdef", [4])
        #expect(try await storage.list("h") == [BlobListing(name: "0123456789abcdef")])
        let content = try await storage.get("h/0123456789abcdef", limit: 10, unless: nil)
        #expect(content == .content([4], version: nil))
        try await storage.create("a/y", [1])
        #expect(await error { try await storage.create("a/y", [2]) } == .denied)
        guard case .content([1], _) = try await storage.get("a/y", limit: 10, unless: nil) else {
            Issue.record("it was replaced")
            return
        }
        try await storage.delete("h/0123456789abcdef")
        #expect(try await storage.list("h") == [])
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path + "/a") == ["y"])
        let mode = try FileManager.default.attributesOfItem(atPath: place.path + "/a/y")[.posixPermissions] as? Int
        #expect(mode == 0o600)
    }

    @Test(.timeLimit(.minutes(30)))
    func `what lies around is ignored, and blocks nobody`() async throws {
        let place = try Place()
        let device = try Device(place.path)
        try await device.signIn()
        try device.set("s", "a", .integer(1))
        try await device.sync()
        let folders = ["a", "h", "s"]
        let long = String(repeating: "0", count: 32)
        for folder in folders {
            for name in ["0000000000000001", long] {
                _ = try place.sub("\(folder)/\(name)d")
                #expect(mkfifo("\(place.path)/\(folder)/\(name)", 0o600) == 0)
                let link = "\(place.path)/\(folder)/1\(name.dropFirst())"
                try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "/dev/zero")
                _ = try place.sub("\(folder)/2\(name.dropFirst())")
            }
        }
        if isRoot {
            #expect(mknod("\(place.path)/h/3000000000000000", S_IFCHR | 0o600, 5) == 0)
        }
        try place.write("h/.0123456789abcdef.tmp", [1, 2])
        try place.write("h/0123456789abcdef\nwith a new line", [1, 2])
        try place.write("h/0123456789ABCDEF", [1, 2])
        try place.write("h/4000000000000000", [UInt8](repeating: 0, count: (4 << 20) + 1))
        #expect(open(place.path + "/h/\u{1}", O_CREAT, 0o600) >= 0)
        for number in 0..<2000 { try place.write("h/odd name \(number)", []) }

        let b = try Device(place.path, name: "B")
        try await b.signIn(creating: false)
        let pulled = try await b.pull()
        #expect(pulled.isComplete)
        #expect(try b.values("s") == ["a": .integer(1)])
        // Only what is named like the service's files is reported: a fifo, a link, a directory, a device, a file that
        // is too large, and a name with a line feed.
        #expect(pulled.problems.count == (isRoot ? 6 : 5))
        #expect(pulled.problems.allSatisfy { !$0.contains("\n") })
        try b.set("s", "b", .integer(2))
        try await b.push()
        try await device.pull()
        #expect(try device.values("s").count == 2)
    }

    // MARK: Folders that aren't usable

    @Test func `a folder that vanishes between two calls is unavailable, and is used again when it is back`()
        async throws
    {
        let place = try Place()
        let folder = try place.sub("sync")
        let device = try Device(folder)
        try await device.signIn()
        try await device.sync()
        try device.set("s", "a", .integer(1))
        let push = try await device.beginPush()
        try FileManager.default.moveItem(atPath: folder, toPath: place.path + "/away")
        let snapshot = try device.database.store("s").snapshot()
        try await push.upload(snapshot)
        #expect(await error { try await push.finish() } == .unavailable)
        #expect(await error { try await device.pull() } == .unavailable)
        #expect(await error { try await device.push() } == .unavailable)
        try FileManager.default.moveItem(atPath: place.path + "/away", toPath: folder)
        try await device.sync()
        let b = try Device(folder, name: "B")
        try await b.signIn(creating: false)
        try await b.pull()
        #expect(try b.values("s") == ["a": .integer(1)])
    }

    @Test(.enabled(if: canMount, "mounting needs root"))
    func `what was begun on one drive does not go on on another`() async throws {
        let place = try Place()
        let storage = try makeStorage(place.path)
        _ = try await storage.check(creatingFolder: false)
        try await storage.put("h/x", [1])
        try run("mount", "-t", "tmpfs", "none", place.path)
        defer { _ = try? run("umount", place.path) }
        #expect(await error { try await storage.put("h/y", [1]) } == .unavailable)
        #expect(await error { _ = try await storage.list("h") } == .unavailable)
        _ = try await storage.check(creatingFolder: false)
        #expect(try await storage.list("h") == [])
    }

    @Test func `a file where the folder should be is refused`() async throws {
        let place = try Place()
        try place.write("file", [])
        #expect(await error { _ = try await makeStorage(place.path + "/file").check(creatingFolder: true) } == .denied)
        #expect(
            await error { _ = try await makeStorage(place.path + "/none").check(creatingFolder: true) } == .unavailable
        )
        try place.write("h", [])
        #expect(await error { _ = try await makeStorage(place.path).check(creatingFolder: true) } == .denied)
    }

    @Test func `links in the path of one's own folder are followed, in the folder they are not`() async throws {
        let place = try Place()
        _ = try place.sub("real")
        let link = place.path + "/link"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: place.path + "/real")
        let storage = try makeStorage(link)
        _ = try await storage.check(creatingFolder: false)
        try await storage.put("s/x", [1])
        _ = try place.sub("elsewhere")
        try FileManager.default.createSymbolicLink(
            atPath: place.path + "/real/h",
            withDestinationPath: place.path + "/elsewhere"
        )
        #expect(await error { try await storage.put("h/x", [1]) } == .denied)
        #expect(place.names("elsewhere") == [])
        try FileManager.default.createSymbolicLink(atPath: place.path + "/real/s/y", withDestinationPath: "x")
        guard case .unreadable = try await storage.get("s/y", limit: 10, unless: nil) else {
            Issue.record("a link was followed")
            return
        }
        // Writing replaces the link, and leaves its target alone.
        try await storage.put("s/y", [2])
        #expect(try place.read("real/s/x") == [1])
    }

    @Test func `another user's folder is refused`() async throws {
        let place = try Place()
        let other = FolderAccess.own(uid: geteuid() + 1)
        #expect(await error { _ = try await makeStorage(place.path, other).check(creatingFolder: true) } == .denied)
        #expect(place.names("") == [])
    }

    @Test(arguments: ["state", "state/u1000", "link/u1000"])
    func `a folder among the service's own data is refused`(name: String) async throws {
        let place = try Place()
        let state = URL(filePath: place.path + "/state")
        try FileManager.default.createDirectory(
            at: state.appending(path: "u1000"), withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(atPath: place.path + "/link", withDestinationPath: "state")
        let access = FolderAccess.own(uid: geteuid(), besides: state.path)
        #expect(
            await error { _ = try await makeStorage("\(place.path)/\(name)", access).check(creatingFolder: true) }
                == .denied)
        // Another folder is fine, though its name begins alike.
        try FileManager.default.createDirectory(atPath: state.path + "s", withIntermediateDirectories: true)
        _ = try await makeStorage(state.path + "s", access).check(creatingFolder: true)
    }

    @Test(.enabled(if: canMount, "mounting needs root"))
    func `a folder that may only be read is denied, and what is there is read`() async throws {
        let place = try Place()
        try run("mount", "-t", "tmpfs", "none", place.path)
        defer { _ = try? run("umount", "-l", place.path) }
        let a = try Device(place.path)
        try await a.signIn()
        try a.set("s", "a", .integer(1))
        try await a.sync()
        #expect(try run("mount", "-o", "remount,ro", place.path).status == 0)
        let b = try Device(place.path, name: "B")
        try await b.signIn(creating: false)
        try await b.pull()
        #expect(try b.values("s") == ["a": .integer(1)])
        try b.set("s", "b", .integer(1))
        #expect(await error { try await b.push() } == .denied)
        let checks = await FolderBackend.check(url: "folder://" + place.path, access: .own(uid: geteuid()))
        #expect(checks.last.map { $0.step == "write" && !$0.isPassed } == true)
        #expect(checks.last?.detail.contains("ReadWritePaths= of the service's unit") == true, "\(checks)")
    }

    @Test(.enabled(if: geteuid() != 0, "permissions do not stop root"))
    func `a folder without permissions is denied`() async throws {
        let place = try Place()
        chmod(place.path, 0)
        defer { chmod(place.path, 0o700) }
        #expect(await error { _ = try await makeStorage(place.path).check(creatingFolder: true) } == .denied)
    }

    @Test(.enabled(if: canMount, "mounting needs root"))
    func `a full folder is full, and what was there stays`() async throws {
        let place = try Place()
        try run("mount", "-t", "tmpfs", "-o", "size=128k", "none", place.path)
        defer { _ = try? run("umount", "-l", place.path) }
        let a = try Device(place.path)
        try await a.signIn()
        try a.set("s", "a", .integer(1))
        try await a.sync()
        try a.set("s", "b", .data([UInt8](repeating: 1, count: 300_000)))
        for _ in 0..<3 { #expect(await error { try await a.push() } == .full) }
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: place.path + "/s").allSatisfy { !$0.hasPrefix(".") }
        )
        try a.remove("s", "b")
        try await a.sync()
        let b = try Device(place.path, name: "B")
        try await b.signIn(creating: false)
        try await b.pull()
        #expect(try b.values("s") == ["a": .integer(1)])
    }

    // MARK: A service for all users

    @Test func `only the roots of the configuration are used, without links`() async throws {
        let place = try Place()
        // macOS and some systems have links in the path of temporary directories.
        let root = try #require(realpath(place.path, nil).map { String(cString: $0) })
        let access = FolderAccess.roots([root + "/share/"], uid: 1234)
        _ = try place.sub("share")
        _ = try place.sub("other")
        for path in ["/other", "/share/../other", "/share/u1234", "/share/.", ""] {
            #expect(
                await error { _ = try await makeStorage(root + path, access).check(creatingFolder: true) } == .denied)
        }
        try FileManager.default.createSymbolicLink(atPath: root + "/link", withDestinationPath: root + "/share")
        let linked = FolderAccess.roots([root + "/link"], uid: 1234)
        #expect(
            await error { _ = try await makeStorage(root + "/link", linked).check(creatingFolder: true) } == .denied)
        let behind = FolderAccess.roots([root + "/link/u"], uid: 1234)
        #expect(
            await error { _ = try await makeStorage(root + "/link/u", behind).check(creatingFolder: true) } == .denied)
        #expect(place.names("share") == [])

        let storage = try makeStorage(root + "/share//", access)
        #expect(await error { _ = try await storage.check(creatingFolder: false) } == .noAccount)
        let checks = await FolderBackend.check(url: "folder://\(root)/share", access: access)
        #expect(checks.allSatisfy(\.isPassed) && checks.last?.detail.contains("signing in creates it") == true)
        #expect(place.names("share") == [])
        _ = try await storage.check(creatingFolder: true)
        #expect(place.names("share") == ["u1234"])
        try await storage.put("h/x", [1])
        #expect(place.names("share/u1234/h") == ["x"])
    }

    @Test func `a user's folder that is gone from a root is missing, and created again for an account`() async throws {
        let place = try Place()
        let root = try #require(realpath(place.path, nil).map { String(cString: $0) })
        let storage = try makeStorage(root, .roots([root], uid: 1234))
        do throws(RemoteError) {
            _ = try await storage.check(creatingFolder: false)
            Issue.record("it is there")
        } catch {
            #expect(error.code == .noAccount && error.isFolderMissing, "\(error)")
        }
        _ = try await storage.check(creatingFolder: true)
        #expect(place.names("") == ["u1234"])
    }

    @Test func `a path leaves no root, whatever character follows a slash`() async throws {
        let place = try Place()
        let root = try #require(realpath(place.path, nil).map { String(cString: $0) })
        let access = FolderAccess.roots([root + "/share"], uid: 1234)
        _ = try place.sub("share")
        // To Swift, a slash and a combining accent are one character.
        let accent = "\u{301}"
        _ = try place.sub(accent)
        _ = try place.sub("share/\(accent)")
        for path in ["/share/../\(accent)", "/share/\(accent)/../\(accent)/../../\(accent)"] {
            #expect(
                await error { _ = try await makeStorage(root + path, access).check(creatingFolder: true) } == .denied)
        }
        #expect(place.names(accent) == [])
        _ = try await makeStorage("\(root)/share/\(accent)", access).check(creatingFolder: true)
        #expect(place.names("share/\(accent)") == ["u1234"])
    }

    @Test func `a folder in a root is used as the root is, and one that is not allowed is refused with those that are`()
        async throws
    {
        let place = try Place()
        let root = try #require(realpath(place.path, nil).map { String(cString: $0) })
        let access = FolderAccess.roots([root + "/share/", root + "/more"], uid: 1234)
        _ = try place.sub("share")
        _ = try place.sub("share/team")
        let storage = try makeStorage(root + "/share/team", access)
        _ = try await storage.check(creatingFolder: true)
        #expect(place.names("share/team") == ["u1234"])
        for path in ["/share/u77", "/share/team/u1234", "/shares", "/share/team/../team"] {
            await #expect { _ = try await makeStorage(root + path, access).check(creatingFolder: true) } throws: {
                error in
                guard let error = error as? RemoteError, error.code == .denied else { return false }
                return error.message.contains("may be in \(root)/share, \(root)/more,")
            }
        }
        if geteuid() == 0 {
            chown(root + "/share/team", 1234, 1234)
            #expect(await error { _ = try await storage.check(creatingFolder: true) } == .denied)
        }
    }

    @Test func `a root in which others may write is refused, and so is a folder on the way`() async throws {
        let place = try Place()
        let root = try #require(realpath(place.path, nil).map { String(cString: $0) })
        let access = FolderAccess.roots([root + "/share"], uid: 1234)
        for path in ["share", "share/team", "share/team/more"] { _ = try place.sub(path) }
        for path in ["/share", "/share/team", "/share/team/more"] {
            for mode in [0o1777, 0o775] as [mode_t] {
                chmod(root + path, mode)
                let storage = try makeStorage(root + "/share/team/more", access)
                do throws(RemoteError) {
                    _ = try await storage.check(creatingFolder: true)
                    Issue.record("\(path) is used")
                } catch {
                    #expect(error.code == .denied && error.message.contains("may write to \(root + path),"))
                }
            }
            chmod(root + path, 0o755)
        }
        #expect(place.names("share/team/more") == [])
        _ = try await makeStorage(root + "/share/team/more", access).check(creatingFolder: true)
    }

    @Test func `a user's folder in a root is not the next user's with the same uid`() async throws {
        let place = try Place()
        let root = try #require(realpath(place.path, nil).map { String(cString: $0) })
        let users = Mutex<[UserEntry]?>([UserEntry(name: "alice", uid: 1234)])
        let access = FolderAccess.roots([root], uid: 1234) { key in
            guard let users = users.withLock(\.self) else { return .unknown }
            let user = users.first { key == .name($0.name) || key == .uid($0.uid) }
            return user.map(UserEntry.Answer.known) ?? .nobody
        }
        let storage = try makeStorage(root, access)
        #expect(await problem(creating: false)?.code == .noAccount)
        #expect(place.names("") == [], "nothing is recorded of a folder that doesn't exist")
        func problem(creating: Bool = true) async -> RemoteError? {
            do throws(RemoteError) {
                _ = try await storage.check(creatingFolder: creating)
                return nil
            } catch {
                return error
            }
        }
        #expect(await problem() == nil)
        #expect(place.names("") == ["u1234", "u1234.user"])
        #expect(await problem() == nil)
        // While names can't be looked up, an account goes on, and nobody signs in.
        users.withLock { $0 = nil }
        #expect(await problem(creating: false) == nil)
        #expect(await problem()?.code == .unavailable)
        users.withLock { $0 = [UserEntry(name: "bob", uid: 1234)] }
        for creating in [true, false] {
            let found = await problem(creating: creating)
            #expect(found?.code == .denied && found?.message.contains("alice's") == true)
        }
        // Another form of the same user's name.
        users.withLock { $0 = [UserEntry(name: "alice@corp", uid: 1234), UserEntry(name: "alice", uid: 1234)] }
        #expect(await problem() == nil)
        users.withLock { $0 = [UserEntry(name: "bob", uid: 1234)] }
        try place.remove("u1234.user")
        #expect(await problem() == nil)
        users.withLock { $0 = [UserEntry(name: "alice", uid: 1234)] }
        #expect(await problem()?.message.contains("bob's") == true)
        // An administrator may correct it, and what isn't a name is none that was forgotten.
        try "alice\n".write(toFile: root + "/u1234.user", atomically: false, encoding: .utf8)
        #expect(await problem() == nil)
        try place.remove("u1234.user")
        _ = try place.sub("u1234.user")
        #expect(await problem(creating: false) != nil)
        #expect(await problem() != nil)
    }

    @Test func `a link in the place of a user's folder is refused`() async throws {
        let place = try Place()
        let root = try #require(realpath(place.path, nil).map { String(cString: $0) })
        _ = try place.sub("elsewhere")
        try FileManager.default.createSymbolicLink(atPath: root + "/u7", withDestinationPath: root + "/elsewhere")
        let access = FolderAccess.roots([root], uid: 7)
        #expect(await error { _ = try await makeStorage(root, access).check(creatingFolder: true) } == .denied)
        #expect(place.names("elsewhere") == [])
    }

    @Test(.enabled(if: geteuid() == 0, "needs root"))
    func `a user's folder that somebody else made is refused`() async throws {
        let place = try Place()
        let root = try #require(realpath(place.path, nil).map { String(cString: $0) })
        chown(try place.sub("u7"), 7, 7)
        #expect(
            await error { _ = try await makeStorage(root, .roots([root], uid: 7)).check(creatingFolder: true) }
                == .denied
        )
    }

    @Test func `a user's folder that is not there any more is a drive that is not mounted`() async throws {
        let place = try Place()
        let root = try #require(realpath(place.path, nil).map { String(cString: $0) })
        let backend = try FolderBackend.make(url: "folder://" + root, access: .roots([root], uid: 7))
        #expect(await error { _ = try await backend.open(creatingAccount: false) } == .noAccount)
        #expect(try await backend.open(creatingAccount: true).isNew)
        try place.remove("u7")
        #expect(await error { _ = try await backend.pull(after: nil, as: .init(bits: 1)) } == .unavailable)
        await backend.close()
    }

    @Test(.enabled(if: geteuid() == 0, "needs root"))
    func `the user may use what the service made, and nobody else`() async throws {
        let place = try Place()
        let root = try #require(realpath(place.path, nil).map { String(cString: $0) })
        chmod(root, 0o755)
        let storage = try makeStorage(root, .roots([root], uid: 1234))
        let notes = try await storage.check(creatingFolder: true)
        try await storage.put("h/x", [65])
        guard notes.isEmpty else { return }
        func cat(as user: Int) throws -> Int32 {
            try run("setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "cat", root + "/u1234/h/x")
                .status
        }
        #expect(try cat(as: 1234) == 0)
        #expect(try cat(as: 1235) != 0)
        let list = try run("getfacl", "-pn", root + "/u1234/h/x").output
        #expect(list.contains("user:1234:rw") || list.contains("effective:rw") || !list.contains("#"))
    }

    @Test func `a folder that was renamed for a user's new id is that user's, with everything of the service in it`()
        async throws
    {
        let place = try Place()
        let root = try #require(realpath(place.path, nil).map { String(cString: $0) })
        let former = try makeStorage(root, .roots([root], uid: 1234))
        guard try await former.check(creatingFolder: true).isEmpty else { return }
        try await former.put("h/x", [65])
        try place.write("elsewhere", [66])
        let list = try run("getfacl", "-cpn", root + "/elsewhere").output
        try FileManager.default.createSymbolicLink(
            atPath: root + "/u1234/h/link", withDestinationPath: root + "/elsewhere")
        try FileManager.default.linkItem(atPath: root + "/elsewhere", toPath: root + "/u1234/h/second")
        try FileManager.default.moveItem(atPath: root + "/u1234", toPath: root + "/u1235")

        let storage = try makeStorage(root, .roots([root], uid: 1235))
        _ = try await storage.check(creatingFolder: false)
        try await storage.put("s/y", [67])
        for name in ["", "/a", "/h", "/s", "/h/x", "/s/y"] {
            let list = try run("getfacl", "-cpn", "\(root)/u1235\(name)").output
            #expect(list.contains("user:1235:rw") && !list.contains("1234"), "\(name): \(list)")
        }
        #expect(try run("stat", "-c", "%a", root + "/u1235/h/x").output == "660\n")
        #expect(try run("getfacl", "-cpn", root + "/elsewhere").output == list, "another file is nobody's to give")

        // What an administrator adds stays, and so does a list without users.
        try run("setfacl", "-m", "u:1236:rx", root + "/u1235")
        _ = try await storage.check(creatingFolder: false)
        #expect(try run("getfacl", "-cpn", root + "/u1235").output.contains("user:1236:r-x"))
        try run("setfacl", "-b", root + "/u1235")
        _ = try await storage.check(creatingFolder: false)
        #expect(try !run("getfacl", "-cpn", root + "/u1235").output.contains("user:1235"))
    }

    @Test(.enabled(if: geteuid() == 0, "needs root"))
    func `what a user has put into a folder that was renamed for a new id is left to its owner`() async throws {
        let place = try Place()
        let root = try #require(realpath(place.path, nil).map { String(cString: $0) })
        let former = try makeStorage(root, .roots([root], uid: 1234))
        guard try await former.check(creatingFolder: true).isEmpty else { return }
        try place.write("u1234/h/own", [65])
        chown(root + "/u1234/h/own", 1234, 1234)
        let list = try run("getfacl", "-cpn", root + "/u1234/h/own").output
        try FileManager.default.moveItem(atPath: root + "/u1234", toPath: root + "/u1235")
        _ = try await makeStorage(root, .roots([root], uid: 1235)).check(creatingFolder: false)
        #expect(try run("getfacl", "-cpn", root + "/u1235/h/own").output == list)
        #expect(try run("getfacl", "-cpn", root + "/u1235/h").output.contains("user:1235:rwx"))
    }

    // MARK: Checks

    @Test func `a folder that works passes every step and is left as it was`() async throws {
        let place = try Place()
        let checks = await FolderBackend.check(url: "folder://" + place.path, access: .own(uid: geteuid()))
        #expect(checks.allSatisfy { $0.isPassed })
        #expect(checks.map(\.step) == ["address", "open", "write", "read", "overwrite", "list", "delete", "account"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path) == [])
        let none = await FolderBackend.check(url: "folder://" + place.path + "/none", access: .own(uid: geteuid()))
        #expect(none.map(\.step) == ["address", "open"] && none.last?.isPassed == false)
        let bad = await FolderBackend.check(url: "smb://x", access: .own(uid: geteuid()))
        #expect(bad.map(\.isPassed) == [false])
    }

    // MARK: Hints

    @Test(.timeLimit(.minutes(30)))
    func `another device's head is a hint, one's own is none`() async throws {
        let place = try Place()
        let (a, b) = (try Device(place.path, name: "A"), try Device(place.path, name: "B"))
        try await a.signIn()
        try await b.signIn(creating: false)
        try await a.sync()
        #expect(a.backend.traits.givesHints == true)
        let hints = Counter(a.backend.hints())
        // The first round may get hints of what came before it.
        var told = 1
        for round in 0..<10 where told > 0 {
            let before = hints.count
            for value in 0..<3 {
                try a.set("s", "a", .data([UInt8](repeating: UInt8(3 * round + value), count: 300)))
                try await a.sync()
            }
            try await Task.sleep(for: .milliseconds(300))
            told = hints.count - before
        }
        #expect(told == 0)
        try await b.pull()
        try b.set("s", "b", .integer(1))
        let own = hints.count
        try await b.push()
        try await hints.wait(for: own + 1)
        try await a.sync()

        // The folder goes away and comes back as another one.
        let pushed = hints.count
        try FileManager.default.moveItem(atPath: place.path + "/h", toPath: place.path + "/gone")
        try await hints.wait(for: pushed + 1)
        try FileManager.default.copyItem(atPath: place.path + "/gone", toPath: place.path + "/h")
        try await a.sync()
        let before = hints.count
        try await Task.sleep(for: .milliseconds(1200))
        try b.set("s", "b", .integer(2))
        try await b.sync()
        try await hints.wait(for: before + 1)
        await a.backend.close()
        await hints.end()
    }

    @Test func `where the system has no watch left, the next check tries again`() async throws {
        let place = try Place()
        let tries = Mutex(0)
        let watch = FolderWatch {
            tries.withLock { $0 += 1 }
            return tries.withLock { $0 } == 1 ? -1 : inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        }
        let storage = FolderStorage(
            try FolderURL("folder://" + place.path), access: .own(uid: geteuid()), watch: watch)
        let hints = Counter(storage.hints())
        _ = try await storage.check(creatingFolder: true)
        #expect(!storage.traits.givesHints)
        _ = try await storage.check(creatingFolder: false)
        #expect(storage.traits.givesHints)
        try Data().write(to: URL(fileURLWithPath: place.path + "/h/0123456789abcdef"))
        try await hints.wait(for: 1)
        storage.close()
        await hints.end()
    }

    @Test func `a change ends the watch until the folder is checked again, so that no events pile up`() async throws {
        let place = try Place()
        let inotify = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        let storage = FolderStorage(
            try FolderURL("folder://" + place.path), access: .own(uid: geteuid()), watch: FolderWatch { inotify })
        let hints = Counter(storage.hints())
        _ = try await storage.check(creatingFolder: true)
        #expect(try watches(of: inotify) == 2)
        for number in 0..<9 { try Data().write(to: URL(fileURLWithPath: place.path + "/h/\(number)")) }
        try await hints.wait(for: 1)
        #expect(try watches(of: inotify) == 0)
        let late = Counter(storage.hints())
        try await late.wait(for: 1)
        _ = try await storage.check(creatingFolder: false)
        #expect(try watches(of: inotify) == 2)
        try Data().write(to: URL(fileURLWithPath: place.path + "/s/9"))
        try await hints.wait(for: 2)
        storage.close()
        await hints.end()
        await late.end()
    }

    /// The number of folders that an inotify instance watches.
    private func watches(of inotify: Int32) throws -> Int {
        let info = try String(contentsOfFile: "/proc/self/fdinfo/\(inotify)", encoding: .utf8)
        return info.split(separator: "\n").filter { $0.hasPrefix("inotify ") }.count
    }

    @Test func `more events than are read in a row end the watch, even if they mean nothing`() async throws {
        // They may all have been read before the watch begins.
        var hasEnded = false
        for _ in 0..<10 where !hasEnded {
            let place = try Place()
            let folder = try place.sub("h")
            let watch = FolderWatch {
                let inotify = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
                inotify_add_watch(inotify, folder, UInt32(IN_CREATE | IN_DELETE))
                for number in 0..<8000 {
                    let name = "\(folder)/.\(number)" + String(repeating: "x", count: 200)
                    mkdir(name, 0o700)
                    rmdir(name)
                }
                return inotify
            }
            let storage = FolderStorage(
                try FolderURL("folder://" + place.path), access: .own(uid: geteuid()), watch: watch)
            let hints = Counter(storage.hints())
            _ = try await storage.check(creatingFolder: true)
            for _ in 0..<100 where hints.count == 0 { try await Task.sleep(for: .milliseconds(10)) }
            hasEnded = hints.count > 0
            storage.close()
            await hints.end()
        }
        #expect(hasEnded)
    }

    @Test func `the type of a mount is found behind its optional fields`() {
        let mounts = """
            22 29 0:21 / /sys rw,nosuid - sysfs sysfs rw
            29 1 254:1 / / rw,relatime shared:1 master:2 - ext4 /dev/vda1 rw
            """
        #expect(Mount.type(ofMount: "29", in: mounts) == "ext4")
        #expect(Mount.type(ofMount: "2", in: mounts) == nil)
    }
}

/// Counts what a stream yields.
private final class Counter: Sendable {
    private let yielded = Mutex(0)
    private let task = Mutex<Task<Void, Never>?>(nil)

    init(_ stream: AsyncStream<Void>) {
        task.withLock { task in
            task = Task { [self] in
                for await _ in stream { yielded.withLock { $0 += 1 } }
            }
        }
    }

    var count: Int { yielded.withLock(\.self) }

    func wait(for count: Int) async throws {
        for _ in 0..<6000 where self.count < count { try await Task.sleep(for: .milliseconds(10)) }
        #expect(self.count >= count)
    }

    /// Returns when the stream has ended.
    func end() async { await task.withLock(\.self)?.value }
}
