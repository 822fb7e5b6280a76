// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import ServerTesting
import Testing
import UbiquitousStoreTesting

/// Encrypted accounts as users and programs see them: two services, and a folder or a server between them.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct EncryptionTests {
    private nonisolated static let server = [WebDAVServer.Kind.lighttpd, .apache, .nginx, .rclone].first {
        $0.program != nil
    }
    private static let encrypted: KeyValuePairs<String, Value> = [
        "encrypt": .boolean(true), "device-name": "Ada's laptop of brass",
    ]

    /// What must not be in anything that leaves a device: keys, values, identifiers, and names of apps and devices.
    private static let hidden = [
        "org.example.Notes", "Notes", "favourite-colour", "vermilion-and-teal", "Ada's laptop", "of brass",
        "the second telephone", "shopping-list", "seventeen turnips",
    ]

    /// Returns the names and contents of a folder's files, without the zeros at the end of some.
    private static func bytes(below folder: String) throws -> [UInt8] {
        let files = try #require(FileManager.default.enumerator(atPath: folder))
        return files.compactMap { $0 as? String }.reduce(into: []) { bytes, name in
            let contents = FileManager.default.contents(atPath: folder + "/" + name) ?? Data()
            let end = contents.lastIndex { $0 != 0 } ?? contents.startIndex
            bytes += Array(name.utf8) + Array(contents[..<end])
        }
    }

    /// Returns what a folder's files show without being opened: lengths, modes, owners, times, and targets of links.
    private static func outsides(below folder: String) throws -> [UInt8] {
        let files = try #require(FileManager.default.enumerator(atPath: folder)).compactMap { $0 as? String }
        let lines = files.map { name in
            var status = stat()
            lstat(folder + "/" + name, &status)
            let times = [status.st_mtim, status.st_ctim, status.st_atim].map { time in
                "\(time.tv_sec * 1_000_000 + time.tv_nsec / 1000) \(time.tv_nsec)"
            }
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: folder + "/" + name)
            return "\(status.st_size) \(status.st_mode) \(status.st_uid) \(status.st_gid) \(times) \(target ?? "")\n"
        }
        return Array(lines.joined().utf8)
    }

    /// Returns what a cluster sends to a watch of everything since its first revision, up to a value.
    @concurrent
    private static func watchAnswers(of cluster: EtcdCluster, until last: String) async throws -> [UInt8] {
        let watch = Process()
        watch.executableURL = URL(filePath: "/usr/bin/env")
        watch.arguments = [
            "ETCDCTL_API=3", "etcdctl", "--endpoints", "http://127.0.0.1:\(cluster.ports[0])", "watch", "--prefix", "",
            "--rev", "1", "-w", "json",
        ]
        let output = Pipe()
        watch.standardOutput = output
        try watch.run()
        let end = Data(Data(last.utf8).base64EncodedString().utf8)
        var told = Data()
        while told.range(of: end) == nil {
            let more = output.fileHandleForReading.availableData
            try #require(!more.isEmpty, "the watch has ended")
            told += more
        }
        watch.terminate()
        watch.waitUntilExit()
        return Array(told)
    }

    /// Returns an attacker who searches for the account's contents, times of writes, names of devices, the phrase, and
    /// this machine's names and paths.
    private func stranger(to devices: TwoDevices, _ phrase: String) async throws -> Stranger {
        let words = phrase.split(separator: " ")
        var texts = Self.hidden + ["laptop", phrase] + zip(words, words.dropFirst()).map { "\($0) \($1)" }
        for device in [devices.laptop, devices.phone] {
            texts.append(try await devices.account(device).text("DeviceIdentifier"))
            texts += [device.directory.path, device.stateDirectory, device.runtimeDirectory]
        }
        // Shorter texts occur in random bytes.
        let machine = [ProcessInfo.processInfo.hostName, NSUserName(), NSFullUserName(), NSHomeDirectory()]
        let former =
            try await devices.store(devices.laptop).history("favourite-colour")
            + devices.store(devices.phone).history("favourite-colour")
        let times = try former.map { former in
            guard case .integer(let time) = former["when"] else { throw StrangeHistory() }
            return UInt64(time)
        }
        try #require(!times.isEmpty)
        return Stranger(lookingFor: texts + machine.filter { $0.utf8.count > 5 }, times: times)
    }

    private struct StrangeHistory: Error {}

    private func write(_ devices: TwoDevices) async throws {
        try await devices.store(devices.laptop).set("favourite-colour", "vermilion-and-teal")
        for number in 0..<200 {
            try await devices.store(devices.laptop).set(
                "shopping-list \(number)", .string(Text("seventeen turnips \(number)")))
        }
        try await devices.account(devices.laptop).syncNow()
        try await devices.store(devices.phone).set("favourite-colour", "vermilion-and-teal, again")
    }

    /// The one of two devices that stops because the marker of the other's account was put beside its own.
    private struct Stopped {
        var device: Device
        var account: AccountClient
        var folder: String
        var planted: String
    }

    private func plantKey(_ devices: TwoDevices) async throws -> Stopped {
        let other = try devices.makeFolder("other")
        let accounts = [try devices.account(devices.laptop), try devices.account(devices.phone)]
        let folders = [devices.folder, other]
        var keys: [String] = []
        for (account, folder) in zip(accounts, folders) {
            try await account.join("folder://" + folder, Self.encrypted)
            keys += try FileManager.default.contentsOfDirectory(atPath: folder + "/a")
        }
        // Of two keys the smaller one counts, so one of the devices stops for the other's.
        let stopped = try #require(keys.indices.first { keys[$0] != keys.min() })
        let planted = try #require(keys.min())
        let device = [devices.laptop, devices.phone][stopped]
        try FileManager.default.copyItem(
            atPath: folders[1 - stopped] + "/a/" + planted, toPath: folders[stopped] + "/a/" + planted)
        try await device.restart()
        #expect(await errorName { try await accounts[stopped].syncNow() } == "KeyNeeded")
        return Stopped(device: device, account: accounts[stopped], folder: folders[stopped], planted: planted)
    }

    @Test func `a key that somebody puts into the remote stops a device, until its user rejects it`() async throws {
        try await withTwoDevices { devices in
            let stopped = try await plantKey(devices)
            try await devices.store(stopped.device).set("key", .integer(1))
            try await stopped.account.resolve("local")
            try await stopped.account.syncNow()
            try await stopped.device.restart()
            try await stopped.account.syncNow()
            #expect(try await stopped.account.property("LastErrorName") == .string(""))
        }
    }

    @Test func `the right words name a key that somebody has put there, and the person can reject it`() async throws {
        try await withTwoDevices { devices in
            let stopped = try await plantKey(devices)
            let (account, url) = (stopped.account, "folder://" + stopped.folder)
            let words = Value.string(Text(try await account.recoveryPhrase(flags: 1)))
            // First the device that has stopped, then a new one.
            for isNew in [false, true] {
                if isNew { try await account.signOut() }
                let error = await failure { try await account.signIn(url, ["recovery-phrase": words]) }
                #expect(error?.name.hasSuffix(".Conflict") == true)
                #expect(error?.message.contains(stopped.planted) == true, "\(String(describing: error))")
                try await account.join(url, ["recovery-phrase": words, "reject-others": .boolean(true)])
                try await stopped.device.restart()
                try await account.syncNow()
                #expect(try await account.property("LastErrorName") == .string(""))
            }
            #expect(
                await errorName { try await account.signIn(url, ["reject-others": .boolean(true)]) } == "InvalidArgs")
        }
    }

    @Test func `a thief of the key who leads the account away from it is shut out with another new key`() async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await laptop.join(devices.url, Self.encrypted)
            try await devices.store(devices.laptop).set("favourite-colour", "vermilion-and-teal")
            try await laptop.syncNow()
            let words = Value.string(Text(try await laptop.recoveryPhrase(flags: 1)))
            // The phone does what a thief of the key would do.
            try await phone.join(devices.url, ["recovery-phrase": words])
            try await phone.replaceKey()
            #expect(await errorName { try await laptop.syncNow() } == "KeyNeeded")
            #expect(await errorName { try await laptop.resolve("local") } == "KeyNeeded")
            try await devices.laptop.restart()
            try await devices.store(devices.laptop).set("away", "kept")
            try await laptop.replaceKey()
            try await laptop.syncNow()
            let next = try await laptop.recoveryPhrase(flags: 1)
            try await devices.store(devices.phone).set("shopping-list", "seventeen turnips")
            try await phone.join(
                devices.url, ["recovery-phrase": .string(Text(next)), "reject-others": .boolean(true)])
            let values = try await devices.converge()
            #expect(values.count == 3 && values["away"] == "kept" && values["shopping-list"] == "seventeen turnips")
            #expect(try await phone.recoveryPhrase() == next)
        }
    }

    @Test func `a key that could not be replaced after another one was rejected is replaced later`() async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await laptop.join(devices.url, Self.encrypted)
            try await devices.store(devices.laptop).set("favourite-colour", "vermilion-and-teal")
            try await laptop.syncNow()
            let words = try await laptop.recoveryPhrase(flags: 1)
            try await phone.join(devices.url, ["recovery-phrase": .string(Text(words))])
            _ = try await devices.converge()
            let heads = devices.folder + "/h/"
            let name = try #require(try FileManager.default.contentsOfDirectory(atPath: heads).first)
            let damaged = try Data(contentsOf: URL(filePath: heads + name)).prefix(60) + Data("damage".utf8)
            try await phone.replaceKey()
            #expect(await errorName { try await laptop.syncNow() } == "KeyNeeded")
            let torn = heads + "0123456789abcdef"
            try damaged.write(to: URL(filePath: torn))
            let error = await failure { try await laptop.replaceKey() }
            #expect(error?.name.hasSuffix(".Conflict") == true, "\(String(describing: error))")
            // No other device reads what this one uploads now.
            try await devices.store(devices.laptop).set("size", .integer(14))
            try await laptop.syncNow()
            let refusal = await errorName {
                try await laptop.signOut(["keep-values": .boolean(false), "keep-pending": .boolean(true)])
            }
            #expect(refusal == "Conflict")
            try await devices.laptop.restart()
            try FileManager.default.removeItem(atPath: torn)
            try await eventually("the laptop has another key") {
                try? await laptop.syncNow()
                // It is withheld during the move.
                return (try? await laptop.recoveryPhrase()).map { $0 != words } == true
            }
            #expect(await errorName { try await phone.syncNow() } == "KeyNeeded")
            try await phone.unlock(try await laptop.recoveryPhrase())
            let values = try await devices.converge()
            #expect(values["favourite-colour"] == "vermilion-and-teal" && values["size"] == .integer(14))
        }
    }

    @Test func `a move whose key is lost before anything was under it is given up`() async throws {
        try await withTwoDevices { devices in
            let laptop = try devices.account(devices.laptop)
            try await laptop.join(devices.url, ["encrypt": .boolean(true)])
            try await devices.store(devices.laptop).set("key", "A")
            try await laptop.syncNow()
            devices.laptop.kill()
            try devices.changeAccountFile(of: devices.laptop) { $0["movingTo"] = String(repeating: "a", count: 32) }
            try await devices.laptop.start()
            try await laptop.syncNow()
            try await eventually("it is given up") {
                try devices.accountFile(of: devices.laptop)["movingTo"] == nil
            }
            try await laptop.replaceKey()
            try await laptop.signOut()
        }
    }

    @Test func `a key can't be replaced while sync is paused, which says so and changes nothing`() async throws {
        try await withTwoDevices { devices in
            let laptop = try devices.account(devices.laptop)
            try await laptop.join(devices.url, Self.encrypted)
            let phrase = try await laptop.recoveryPhrase()
            try await laptop.syncNow()
            let before = try Self.bytes(below: devices.folder)
            try await laptop.setPaused(true)
            #expect(await errorName { try await laptop.replaceKey() } == "BackendUnavailable")
            try await laptop.setPaused(false)
            try FileManager.default.moveItem(atPath: devices.folder, toPath: devices.folder + ".away")
            #expect(await errorName { try await laptop.replaceKey() } == "BackendUnavailable")
            try FileManager.default.moveItem(atPath: devices.folder + ".away", toPath: devices.folder)
            #expect(try Self.bytes(below: devices.folder) == before)
            #expect(try await laptop.recoveryPhrase() == phrase)
            try await laptop.replaceKey()
            #expect(try await laptop.recoveryPhrase() != phrase)
        }
    }

    @Test func `what nobody can read stops a move, and its user can go on without it`() async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await devices.join()
            try await write(devices)
            _ = try await devices.converge()
            let heads = devices.folder + "/h/"
            let names = try FileManager.default.contentsOfDirectory(atPath: heads)
            let whole = try #require(names.first { $0.count == 16 })
            let torn = try Data(contentsOf: URL(filePath: heads + whole)).prefix(100)
            try torn.write(to: URL(filePath: heads + "0123456789abcdef"))
            let before = try FileManager.default.contentsOfDirectory(atPath: devices.folder + "/a")
            let error = await failure { try await laptop.encrypt() }
            #expect(error?.name.hasSuffix(".Conflict") == true)
            #expect(error?.message.contains("h/0123456789abcdef") == true, "\(String(describing: error))")
            #expect(error?.message.contains("--pass-over-unread") == true)
            #expect(try FileManager.default.contentsOfDirectory(atPath: devices.folder + "/a") == before)
            try await laptop.encrypt(["pass-over-unread": .boolean(true)])
            let words = try await laptop.recoveryPhrase()
            try await devices.store(devices.phone).set("away", "kept")
            try await eventually("the phone stops") { await errorName { try await phone.syncNow() } == "KeyNeeded" }
            try await phone.unlock(words)
            let values = try await devices.converge()
            #expect(values.count == 202 && values["away"] == "kept")
            #expect(try Data(contentsOf: URL(filePath: heads + "0123456789abcdef")) == torn)
        }
    }

    @Test(arguments: ["once the account is left", "once the key is gone"])
    func `a service that is killed while it signs out leaves no key, and no account without its key`(moment: String)
        async throws
    {
        try await withTwoDevices { devices in
            let laptop = try devices.account(devices.laptop)
            try await laptop.join(devices.url, Self.encrypted)
            let key = try #require(devices.laptop.keyFiles.first)
            let directory = URL(filePath: key).deletingLastPathComponent().path
            // Leaves on the disk what a kill at this moment would.
            devices.laptop.kill()
            try FileManager.default.moveItem(
                atPath: directory + "/account.plist", toPath: directory + "/account.plist.left")
            if moment == "once the key is gone" { try FileManager.default.removeItem(atPath: key) }
            try await devices.laptop.restart()
            #expect(try await laptop.state() == "signed-out")
            let left = try FileManager.default.contentsOfDirectory(atPath: directory)
            #expect(left.filter { $0.contains("account") } == [])
            #expect(await errorName { try await laptop.signIn(devices.url) } == "KeyNeeded")
        }
    }

    @Test func `a key that can't be removed in signing out is removed before the next account, which keeps its own`()
        async throws
    {
        try await withTwoDevices { devices in
            let laptop = try devices.account(devices.laptop)
            try await laptop.join(devices.url, Self.encrypted)
            let key = try #require(devices.laptop.keyFiles.first)
            let whole = try Data(contentsOf: URL(filePath: key))
            // A directory in place of the key's file can't be removed as a file.
            try FileManager.default.removeItem(atPath: key)
            try FileManager.default.createDirectory(atPath: key + "/full", withIntermediateDirectories: true)
            #expect(await errorName { try await laptop.signOut() } == "IOError")
            #expect(try await laptop.state() == "signed-out")
            let other = "folder://" + (try devices.makeFolder("other"))
            #expect(await errorName { try await laptop.signIn(other, Self.encrypted) } == "IOError")
            try FileManager.default.removeItem(atPath: key)
            try whole.write(to: URL(filePath: key))
            try await laptop.join(other, Self.encrypted)
            try await devices.laptop.restart()
            try await laptop.syncNow()
            #expect(try Data(contentsOf: URL(filePath: key)) != whole)
        }
    }

    @Test func `nothing of what is in an encrypted account is in the folder that another device reads it from`()
        async throws
    {
        try await withTwoDevices { devices in
            let laptop = try devices.account(devices.laptop)
            try await laptop.join(devices.url, Self.encrypted)
            #expect(try await laptop.property("Encrypted") == .boolean(true))
            let phrase = try await laptop.recoveryPhrase()
            #expect(phrase.split(separator: " ").count == 12)
            devices.laptop.keepSecret(phrase)
            devices.phone.keepSecret(phrase)
            try await devices.store(devices.laptop).set("favourite-colour", "vermilion-and-teal")
            try await laptop.syncNow()
            let phone = try devices.account(devices.phone)
            for options in [[:], ["encrypt": .boolean(true)]] as [KeyValuePairs<String, Value>] {
                #expect(await errorName { try await phone.signIn(devices.url, options) } == "KeyNeeded")
            }
            try await phone.join(
                devices.url,
                ["recovery-phrase": .string(Text(phrase.uppercased())), "device-name": "the second telephone"])
            try await write(devices)
            var seen = try Self.bytes(below: devices.folder)
            let values = try await devices.converge()
            seen += try Self.bytes(below: devices.folder)
            var status = stat()
            lstat(devices.folder + "/h", &status)
            let outsides = try Self.outsides(below: devices.folder)
            let now = UInt64(status.st_mtim.tv_sec * 1_000_000 + status.st_mtim.tv_nsec / 1000)
            #expect(Stranger(lookingFor: [], times: [now]).findings(in: outsides) == ["\(now) (plain)"])
            seen += outsides
            #expect(values.count == 201 && values["favourite-colour"] == "vermilion-and-teal, again")
            #expect(try await stranger(to: devices, phrase).findings(in: seen) == [])
        }
    }

    @Test(.enabled(if: server != nil, "no WebDAV server is installed; script/bootstrap --all installs them"))
    func `nothing of what is in an encrypted account is in any byte that was sent to a server`() async throws {
        let server = try WebDAVServer(#require(Self.server), access: .basic)
        let port = try #require(UInt16(server.url.split(separator: ":")[2].prefix { $0 != "/" }))
        let proxy = try FaultProxy(before: port)
        defer { proxy.end() }
        let url = "webdav://127.0.0.1:\(proxy.port)/dav/sync"
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            for device in [devices.laptop, devices.phone] { device.keepSecret(WebDAVServer.password) }
            try await laptop.join(
                url,
                [
                    "user": .string(Text(WebDAVServer.user)), "password": .string(Text(WebDAVServer.password)),
                    "encrypt": .boolean(true), "device-name": "Ada's laptop of brass",
                ])
            let phrase = try await laptop.recoveryPhrase()
            try await laptop.syncNow()
            try await phone.join(
                url,
                [
                    "user": .string(Text(WebDAVServer.user)), "password": .string(Text(WebDAVServer.password)),
                    "recovery-phrase": .string(Text(phrase)), "device-name": "the second telephone",
                ])
            try await write(devices)
            #expect(try await devices.converge().count == 201)
            // Request lines, headers and bodies.
            let sent = proxy.requests.flatMap(\.bytes)
            #expect(sent.count > 10_000)
            #expect(try await stranger(to: devices, phrase).findings(in: sent) == [])
            let user = Stranger(lookingFor: [NSUserName(), ProcessInfo.processInfo.hostName])
            #expect(user.findings(in: proxy.requests.flatMap { $0.bytes.dropLast($0.body.count) }) == [])
        }
    }

    @Test func `an account stays encrypted over restarts, signing in anew and a key that is lost`() async throws {
        try await withTwoDevices { devices in
            let laptop = try devices.account(devices.laptop)
            try await laptop.join(devices.url, Self.encrypted)
            let phrase = try await laptop.recoveryPhrase(flags: 1)
            devices.laptop.keepSecret(phrase)
            try await devices.store(devices.laptop).set("favourite-colour", "vermilion-and-teal")
            try await laptop.syncNow()
            try await laptop.signIn(devices.url)
            try await laptop.syncNow()
            let key = try #require(devices.laptop.keyFiles.first)
            var status = stat()
            #expect(stat(key, &status) == 0 && status.st_mode & 0o777 == 0o600)
            let other = try await anotherKeyFile(devices)
            var damages = ["removed", "torn", "of a newer version", "of another account", "readable by others"]
            if geteuid() == 0 { damages.append("of another owner") }
            for damage in damages {
                let whole = try Data(contentsOf: URL(filePath: key))
                devices.laptop.kill()
                switch damage {
                case "removed": try FileManager.default.removeItem(atPath: key)
                case "torn": try whole.prefix(whole.count / 2).write(to: URL(filePath: key))
                case "readable by others": chmod(key, 0o644)
                case "of another owner": chown(key, 65_534, 65_534)
                case "of another account": try other.write(to: URL(filePath: key))
                default:
                    let plist = try PropertyListSerialization.data(
                        fromPropertyList: ["format": 2], format: .binary, options: 0)
                    try plist.write(to: URL(filePath: key))
                }
                if damage != "readable by others" { chmod(key, 0o600) }
                try await devices.laptop.restart()
                let again = try devices.account(devices.laptop)
                let before = try Self.bytes(below: devices.folder)
                #expect(try await again.property("State") == "paused", "\(damage)")
                #expect(try await again.lastError() == "KeyNeeded", "\(damage)")
                try await devices.store(devices.laptop).set("favourite-colour", .string(Text(damage)))
                #expect(await errorName { try await again.syncNow() } == "KeyNeeded", "\(damage)")
                #expect(await errorName { try await again.signIn(devices.url) } == "KeyNeeded", "\(damage)")
                #expect(await errorName { _ = try await again.recoveryPhrase() } == "KeyNeeded", "\(damage)")
                #expect(try Self.bytes(below: devices.folder) == before, "nothing leaves")
                if damage == "of a newer version" {
                    #expect(await errorName { try await again.unlock(phrase) } == "KeyNeeded")
                    try FileManager.default.removeItem(atPath: key)
                }
                try await again.unlock(phrase)
                try await again.syncNow()
                #expect(try await again.recoveryPhrase() == phrase)
            }
            let again = try devices.account(devices.laptop)
            // A pause doesn't hide that the key is gone.
            try await again.setPaused(true)
            devices.laptop.kill()
            try FileManager.default.removeItem(atPath: key)
            try await devices.laptop.restart()
            #expect(try await again.lastError() == "KeyNeeded")
            try await again.setPaused(false)
            try await again.unlock(phrase)
            try await again.syncNow()
            // While the service runs, it has the key in memory, and the file is repaired with the phrase all the same.
            try Data("no key".utf8).write(to: URL(filePath: key))
            #expect(await errorName { _ = try await again.recoveryPhrase() } == "KeyNeeded")
            try await again.unlock(phrase)
            #expect(try await again.recoveryPhrase() == phrase)
            let phone = try devices.account(devices.phone)
            try await phone.join(devices.url, ["recovery-phrase": .string(Text(phrase))])
            #expect(try await devices.converge()["favourite-colour"] == .string(Text(damages.last ?? "")))
        }
    }

    @Test func `the account that is signed in is opened without the words where it has moved to`() async throws {
        try await withTwoDevices { devices in
            let (laptop, other) = (try devices.account(devices.laptop), try TemporaryDirectory())
            try await laptop.join(devices.url, Self.encrypted)
            let phrase = try await laptop.recoveryPhrase(flags: 1)
            devices.laptop.keepSecret(phrase)
            try await devices.store(devices.laptop).set("kept", .integer(1))
            try await laptop.syncNow()
            let account = try await laptop.property("AccountIdentifier")
            let place = other.path + "/renamed"
            try FileManager.default.moveItem(atPath: devices.folder, toPath: place)
            try await laptop.join("folder://" + place)
            #expect(try await laptop.property("AccountIdentifier") == account)
            #expect(try await laptop.property("Backend") == .string(Text("folder://" + place)))
            try await devices.store(devices.laptop).set("new", .integer(2))
            try await laptop.syncNow()
            let phone = try devices.account(devices.phone)
            try await phone.join("folder://" + place, ["recovery-phrase": .string(Text(phrase))])
            #expect(try await devices.store(devices.phone).everything() == ["kept": .integer(1), "new": .integer(2)])
            // The key opens no other account.
            try FileManager.default.createDirectory(atPath: devices.folder, withIntermediateDirectories: false)
            try await phone.signOut()
            try await phone.join(devices.url, Self.encrypted)
            #expect(await errorName { try await laptop.signIn(devices.url) } == "KeyNeeded")
            #expect(try await laptop.property("AccountIdentifier") == account)
        }
    }

    @Test func `a folder that is put back to a key that was left is not joined under that again`() async throws {
        try await withTwoDevices { devices in
            let laptop = try devices.account(devices.laptop)
            try await laptop.join(devices.url, Self.encrypted)
            let former = try await laptop.recoveryPhrase(flags: 1)
            let copy = devices.folder + " as it was"
            try FileManager.default.copyItem(atPath: devices.folder, toPath: copy)
            try await laptop.replaceKey()
            let phrase = try await laptop.recoveryPhrase(flags: 1)
            try await devices.store(devices.laptop).set("favourite-colour", "vermilion-and-teal")
            try await laptop.syncNow()
            devices.laptop.kill()
            try FileManager.default.removeItem(atPath: devices.folder)
            try FileManager.default.moveItem(atPath: copy, toPath: devices.folder)
            try await devices.laptop.start()
            let again = try devices.account(devices.laptop)
            #expect(await errorName { try await again.unlock(former) } == "RemoteReset")
            #expect(await errorName { try await again.resolve("remote") } == "RemoteReset")
            try await again.resolve("local")
            try await again.syncNow()
            #expect(try await again.recoveryPhrase() == phrase)
            try await devices.account(devices.phone).join(devices.url, ["recovery-phrase": .string(Text(phrase))])
            #expect(try await devices.converge()["favourite-colour"] == "vermilion-and-teal")
        }
    }

    @Test func `another encrypted account in the folder can be accepted, with its words`() async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await laptop.join(devices.url, Self.encrypted)
            try FileManager.default.removeContents(ofDirectory: devices.folder)
            try await phone.join(devices.url, Self.encrypted)
            let phrase = try await phone.recoveryPhrase(flags: 1)
            try await devices.store(devices.phone).set("favourite-colour", "vermilion-and-teal")
            try await phone.syncNow()
            #expect(await errorName { try await laptop.syncNow() } == "RemoteReset")
            #expect(await errorName { try await laptop.resolve("remote") } == "KeyNeeded")
            try await laptop.unlock(phrase)
            #expect(try await devices.converge()["favourite-colour"] == "vermilion-and-teal")
        }
    }

    /// Returns the key file of another account, which the phone joins and leaves again.
    private func anotherKeyFile(_ devices: TwoDevices) async throws -> Data {
        let phone = try devices.account(devices.phone)
        try await phone.join("folder://" + devices.makeFolder("other"), Self.encrypted)
        devices.phone.keepSecret(try await phone.recoveryPhrase(flags: 1))
        let file = try Data(contentsOf: URL(filePath: #require(devices.phone.keyFiles.first)))
        try await phone.signOut()
        return file
    }

    private func detail(of step: String, in steps: [[String: Value]]) -> String {
        guard case .string(let text) = steps.first(where: { $0["step"] == .string(Text(step)) })?["detail"] else {
            return ""
        }
        return text.string
    }

    @Test func `a check tries words and keys, and names what is there beside the account and whose it is`() async throws
    {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await devices.join()
            try await devices.store(devices.phone).set("shopping-list", "seventeen turnips")
            _ = try await devices.converge()
            let plain = try FileManager.default.subpathsOfDirectory(atPath: devices.folder + "/h").map {
                ($0, try #require(FileManager.default.contents(atPath: devices.folder + "/h/" + $0)))
            }
            let words = Value.string("abandon amount liar amount expire adjust cage candy arch gather drum buyer")
            let before = try await phone.check(devices.url, ["recovery-phrase": words])
            #expect(before.last?["step"] == "key" && before.last?["ok"] == .boolean(false))
            try await laptop.encrypt()
            let phrase = try await laptop.recoveryPhrase(flags: 1)
            for device in [devices.laptop, devices.phone] { device.keepSecret(phrase) }
            try await laptop.syncNow()
            for (options, isRight) in [
                (["recovery-phrase": .string(Text(phrase))], true), (["recovery-phrase": words], false),
            ] as [(KeyValuePairs<String, Value>, Bool)] {
                let steps = try await phone.check(devices.url, options)
                let (account, key) = (detail(of: "account", in: steps), detail(of: "key", in: steps))
                #expect(account.contains(", since 20"), "\(steps)")
                let passes = steps.first { $0["step"] == "key" }?["ok"]
                #expect(passes == .boolean(isRight), "\(steps)")
                #expect(key.contains("\"laptop\" uploaded last") == isRight, "\(steps)")
            }
            #expect(
                await errorName {
                    _ = try await phone.check(devices.url, ["recovery-phrase": "eleven words"])
                } == "InvalidArgs")
            // The laptop's check, with its own key, names what a device that doesn't know of the move uploads late.
            try await phone.signOut()
            for (name, bytes) in plain { try bytes.write(to: URL(filePath: devices.folder + "/h/" + name)) }
            let steps = try await laptop.check(devices.url)
            let left = detail(of: "leftovers", in: steps)
            #expect(left.contains("\"phone\" on 20"), "\(steps)")
            #expect(try await phone.state() == "signed-out")
        }
    }

    // MARK: Etcd

    @Test(.enabled(if: EtcdCluster.isInstalled, "script/bootstrap --all installs etcd"))
    func `nothing of what is in an encrypted account is in any file of a cluster, whose history has all of it`()
        async throws
    {
        let cluster = try await elsewhere { try EtcdCluster() }
        let proxy = try FaultProxy(before: cluster.ports[0])
        defer { proxy.end() }
        try await withTwoDevices { devices in
            devices.url = "etcd://127.0.0.1:\(proxy.port)/\(EtcdCluster.prefix)"
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await laptop.join(devices.url, Self.encrypted)
            let phrase = try await laptop.recoveryPhrase()
            for device in [devices.laptop, devices.phone] { device.keepSecret(phrase) }
            try await devices.store(devices.laptop).set("favourite-colour", "vermilion-and-teal")
            try await laptop.syncNow()
            for options in [[:], ["encrypt": .boolean(true)]] as [KeyValuePairs<String, Value>] {
                #expect(await errorName { try await phone.signIn(devices.url, options) } == "KeyNeeded")
            }
            let other = "abandon amount liar amount expire adjust cage candy arch gather drum buyer"
            #expect(
                await errorName {
                    try await phone.signIn(devices.url, ["recovery-phrase": .string(Text(other))])
                } == "KeyWrong")
            try await phone.join(
                devices.url, ["recovery-phrase": .string(Text(phrase)), "device-name": "the second telephone"])
            try await write(devices)
            let values = try await devices.converge()
            #expect(values.count == 201 && values["favourite-colour"] == "vermilion-and-teal, again")
            // A cluster's log contains everything that was ever written to it.
            try cluster.control(["put", "other", "told to the cluster"])
            let kept = try Self.bytes(below: cluster.directory)
            #expect(Data(kept).range(of: Data("told to the cluster".utf8)) != nil)
            let stranger = try await stranger(to: devices, phrase)
            #expect(stranger.findings(in: kept) == [])
            // The watch's answers contain keys and values in base64.
            let told = try await Self.watchAnswers(of: cluster, until: "told to the cluster")
            #expect(told.count > 10_000)
            #expect(stranger.findings(in: told) == [])
            // The requests, including those of watches.
            let asked = proxy.requests
            #expect(asked.contains { $0.path.hasSuffix("/watch") } && asked.contains { $0.path.hasSuffix("/txn") })
            #expect(stranger.findings(in: asked.flatMap(\.bytes)) == [])
        }
    }

    // MARK: Moving

    /// The kind of remote of an account that moves.
    enum Remote: CaseIterable {
        case folder, etcd

        static var installed: [Remote] { EtcdCluster.isInstalled ? allCases : [.folder] }
    }

    /// Runs a test with two devices whose account goes into a kind of remote.
    private func withDevices(
        in remote: Remote, _ body: @BusActor (TwoDevices, EtcdCluster?) async throws -> Void
    ) async throws {
        let cluster = remote == .etcd ? try await elsewhere { try EtcdCluster() } : nil
        try await withTwoDevices { devices in
            if let cluster { devices.url = cluster.url() }
            try await body(devices, cluster)
        }
    }

    @Test(arguments: Remote.installed)
    func `an unencrypted account is encrypted while another device is away, and nothing of either is lost`(
        in remote: Remote
    ) async throws {
        try await withDevices(in: remote) { devices, _ in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            #expect(await errorName { try await laptop.encrypt() } == "NotSignedIn")
            try await devices.join()
            try await devices.store(devices.laptop).set("favourite-colour", "vermilion-and-teal")
            try await devices.store(devices.phone).set("shopping-list", "seventeen turnips")
            _ = try await devices.converge()
            #expect(await errorName { try await laptop.replaceKey() } == "Conflict")
            // The phone is away, with writes of its own.
            try await phone.setPaused(true)
            try await devices.store(devices.phone).set("away", "kept")
            try await laptop.encrypt()
            #expect(try await laptop.property("Encrypted") == .boolean(true))
            try await laptop.encrypt()
            let phrase = try await laptop.recoveryPhrase(flags: 1)
            for device in [devices.laptop, devices.phone] { device.keepSecret(phrase) }
            try await devices.store(devices.laptop).set("later", "from the laptop")
            try await laptop.syncNow()
            try await phone.setPaused(false)
            #expect(await errorName { try await phone.syncNow() } == "KeyNeeded")
            #expect(try await phone.property("State") == "paused")
            #expect(try await devices.store(devices.phone).everything()["away"] == "kept")
            try await devices.phone.restart()
            let again = try devices.account(devices.phone)
            try await again.unlock(phrase)
            let values = try await devices.converge()
            #expect(values.count == 4 && values["away"] == "kept" && values["later"] == "from the laptop")
            #expect(try await again.property("Encrypted") == .boolean(true))

            // As if the user had lost the phone, the laptop replaces the key.
            try await laptop.replaceKey()
            let next = try await laptop.recoveryPhrase(flags: 1)
            #expect(next != phrase)
            for device in [devices.laptop, devices.phone] { device.keepSecret(next) }
            try await devices.store(devices.phone).set("last", "of the phone")
            #expect(await errorName { try await again.syncNow() } == "KeyNeeded")
            #expect(await errorName { try await again.unlock(phrase) } == "KeyWrong")
            try await again.unlock(next)
            #expect(try await devices.converge()["last"] == "of the phone")
        }
    }

    @Test func `an account whose words nobody has confirmed is not left for another remote, if that is asked for`()
        async throws
    {
        try await withTwoDevices { devices in
            let (laptop, other) = (try devices.account(devices.laptop), try TemporaryDirectory())
            try await laptop.join(devices.url, Self.encrypted)
            let (there, kept) = ("folder://" + other.path, ("keep-last-key", Value.boolean(true)))
            let error = await failure { _ = try await laptop.signIn(there, [kept.0: kept.1]) }
            #expect(error?.name.hasSuffix(".Conflict") == true && error?.message.contains("recovery phrase") == true)
            // To the same place, it is no matter.
            try await laptop.join(devices.url, [kept.0: kept.1])
            devices.laptop.keepSecret(try await laptop.recoveryPhrase(flags: 1))
            try await laptop.join(there, [kept.0: kept.1])
            #expect(try await laptop.property("Encrypted") == .boolean(false))
        }
    }

    @Test func `what a device has left unencrypted is worth no word to one that joins with the phrase`() async throws {
        try await withTwoDevices { devices in
            try await devices.join()
            try await devices.store(devices.laptop).set("theme", "dark")
            _ = try await devices.converge()
            // After the kill, the laptop writes under another origin, and its former head stays unencrypted.
            devices.laptop.kill()
            try await devices.laptop.restart()
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await laptop.encrypt()
            let phrase = try await laptop.recoveryPhrase(flags: 1)
            for device in [devices.laptop, devices.phone] { device.keepSecret(phrase) }
            #expect(await errorName { try await phone.syncNow() } == "KeyNeeded")
            try await phone.unlock(phrase)
            try await phone.syncNow()
            #expect(try FileManager.default.contentsOfDirectory(atPath: devices.folder + "/h").count == 3)
            #expect(try await phone.property("LastErrorName") == "")
            try await phone.replaceKey()
            devices.phone.keepSecret(try await phone.recoveryPhrase(flags: 1))
        }
    }

    @Test(arguments: Remote.installed)
    func `a service that is killed anywhere in a move ends it, with all that was written`(
        in remote: Remote
    ) async throws {
        try await withDevices(in: remote) { devices, cluster in
            try await devices.join()
            try await devices.store(devices.laptop).set("favourite-colour", "vermilion-and-teal")
            _ = try await devices.converge()
            // The service is killed once one of these has changed.
            let places = [
                "next-account-key.plist account-key.plist", "account.plist", "/a", "account-key.plist", "/h",
            ]
            for (round, place) in places.enumerated() {
                let laptop = try devices.account(devices.laptop)
                let before = try trace(devices, cluster, place)
                let move = Task { @BusActor in
                    if round == 0 { try await laptop.encrypt() } else { try await laptop.replaceKey() }
                }
                try await eventually("the move has come as far as \(place)") {
                    try trace(devices, cluster, place) != before
                }
                devices.laptop.kill()
                _ = try? await move.value
                try await devices.laptop.restart()
                try await devices.store(devices.laptop).set("round \(round)", .integer(Int64(round)))
                let again = try devices.account(devices.laptop)
                var phrase = ""
                try await eventually("the move is over") {
                    // Once the key is the account's, the service finds by itself that everything is uploaded.
                    if round < 3 { try? await again.syncNow() }
                    if round == 0 { try? await again.encrypt() }
                    phrase = (try? await again.recoveryPhrase(flags: 1)) ?? ""
                    return !phrase.isEmpty
                }
                for device in [devices.laptop, devices.phone] { device.keepSecret(phrase) }
                try await again.syncNow()
                let phone = try devices.account(devices.phone)
                if await errorName({ try await phone.syncNow() }) == "KeyNeeded" { try await phone.unlock(phrase) }
                let values = try await devices.converge()
                #expect(values.count == round + 2 && values["favourite-colour"] == "vermilion-and-teal")
            }
        }
    }

    /// Returns the contents of a folder of the account, or of some of the laptop's files.
    private func trace(_ devices: TwoDevices, _ cluster: EtcdCluster?, _ place: String) throws -> [String: Data] {
        if let cluster, place.hasPrefix("/") {
            let rows = try cluster.control(["get", "--prefix", "\(EtcdCluster.prefix)/blob\(place)/", "-w", "fields"])
            // Only the values, because other fields change with the rest of the cluster.
            return ["rows": Data(rows.split(separator: "\n").filter { $0.contains("\"Value\"") }.joined().utf8)]
        }
        let root = place.hasPrefix("/") ? devices.folder + place : devices.laptop.stateDirectory
        let names = Set(place.split(separator: " ").map(String.init))
        let files = try #require(FileManager.default.enumerator(atPath: root)).compactMap { $0 as? String }.filter {
            place.hasPrefix("/") || names.contains(String($0.split(separator: "/").last ?? ""))
        }
        return files.reduce(into: [:]) { $0[$1] = FileManager.default.contents(atPath: root + "/" + $1) }
    }

    @Test func `words that are no phrase, or another account's, change nothing and are told to nobody`() async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await laptop.join(devices.url, Self.encrypted)
            let words = try await laptop.recoveryPhrase().split(separator: " ").map(String.init)
            devices.phone.keepSecret("xylophonist")
            try await laptop.syncNow()
            let before = try Self.bytes(below: devices.folder)
            let other = "abandon amount liar amount expire adjust cage candy arch gather drum buyer"
            for (phrase, name) in [
                (words.dropLast().joined(separator: " "), "InvalidArgs"),
                ((["xylophonist"] + words.dropFirst()).joined(separator: " "), "InvalidArgs"),
                ("", "InvalidArgs"), (String(repeating: "a", count: 5000), "InvalidArgs"), (other, "KeyWrong"),
            ] {
                let found = await errorName {
                    try await phone.signIn(devices.url, ["recovery-phrase": .string(Text(phrase))])
                }
                #expect(found == name, "\(phrase)")
            }
            #expect(try await phone.property("State") == "signed-out")
            #expect(try Self.bytes(below: devices.folder) == before)
            #expect(await errorName { try await phone.unlock(other) } == "NotSignedIn")
            #expect(await errorName { try await laptop.unlock(other) } == "Conflict")
            // The right phrase isn't logged either, whether it is accepted or refused. The services log everything.
            let phrase = words.joined(separator: " ")
            for device in [devices.laptop, devices.phone] { device.keepSecret(phrase) }
            try await phone.join(devices.url, ["recovery-phrase": .string(Text(phrase))])
            #expect(await errorName { try await phone.unlock(phrase) } == "Conflict")
            try await devices.phone.loseKey()
            let again = try devices.account(devices.phone)
            #expect(await errorName { try await again.unlock(other) } == "KeyWrong")
            try await again.unlock(phrase)
            try await again.syncNow()
            for device in [devices.laptop, devices.phone] {
                let said = (device.log + device.output).split { !$0.isLetter }.map(String.init)
                let told = zip(said, said.dropFirst()).filter { pair in
                    zip(words, words.dropFirst()).contains { $0 == pair }
                }
                #expect(told.isEmpty, "\(told)")
            }
            #expect(await errorName { _ = try await laptop.recoveryPhrase(flags: 2) } == "InvalidArgs")
        }
    }

    @Test func `what is unencrypted is not taken for an encrypted account, and its key goes with it`() async throws {
        try await withTwoDevices { devices in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await laptop.join(devices.url)
            #expect(try await laptop.property("Encrypted") == .boolean(false))
            #expect(await errorName { _ = try await laptop.recoveryPhrase() } == "Conflict")
            #expect(await errorName { try await phone.signIn(devices.url, Self.encrypted) } == "Conflict")
            #expect(
                await errorName { try await phone.signIn("etcd://127.0.0.1:1/a", Self.encrypted) }
                    == "BackendUnavailable")
            // Joining another remote, encrypted, and signing out removes the key.
            let safe = "folder://" + (try devices.makeFolder("safe"))
            try await laptop.join(safe, ["encrypt": .boolean(true), "bring-values": .boolean(true)])
            let key = try #require(devices.laptop.keyFiles.first)
            try await laptop.signOut()
            #expect(access(key, F_OK) != 0)
            #expect(try await laptop.property("Encrypted") == .boolean(false))
            #expect(await errorName { try await laptop.signIn(safe) } == "KeyNeeded")
        }
    }
}
