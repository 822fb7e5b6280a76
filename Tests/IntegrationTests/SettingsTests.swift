// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// The settings file, and the limits on what the service holds for one user.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct SettingsTests {
    /// Runs a test on a machine whose service has a settings file, which the test can rewrite.
    private func withSettings(
        _ text: String, manifests: Int = 1,
        _ body: @BusActor (Machine, _ write: (String?) throws -> Void) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        chmod(directory.path, 0o755)
        let path = directory.path + "/settings.conf"
        /// Writes the file, or removes it.
        let write: (String?) throws -> Void = {
            guard let text = $0 else { return try FileManager.default.removeItem(atPath: path) }
            try Data(text.utf8).write(to: URL(filePath: path))
            chmod(path, 0o644)
        }
        try write(text)
        try await withMachine {
            $0.arguments = ["--configuration", path]
            $0.manifests = (0..<manifests).map { ManifestText("org.example.Notes\($0 == 0 ? "" : "\($0)")") }
        } _: { machine in
            try await body(machine, write)
        }
    }

    /// Starts a service whose settings are only those of a file.
    private func start(
        on bus: PrivateBus, in directory: TemporaryDirectory, _ path: String, _ further: String...
    ) async throws -> Device {
        var options = Device.Options()
        options.isBare = true
        options.arguments =
            ["--bus", bus.address, "--state-directory", directory.path + "/state", "--configuration", path] + further
        return try await Device.start(on: bus, options)
    }

    private func reload(_ machine: Machine) async -> BusError? {
        await failure {
            try await machine.client(as: Users.service).manager("Reload")
        }
    }

    private func limits(_ store: StoreClient) async throws -> Value? { try await store.property("Limits") }

    @Test func `limits of a store are the settings', and hold`() async throws {
        try await withSettings("[Store]\nKeys=2\nTotalBytes=8K\n") { machine, _ in
            let store = try machine.store()
            try await store.set("a", .integer(1))
            try await store.set("b", .integer(1))
            let keys = await failure { try await store.set("c", .integer(1)) }
            #expect(keys?.name.hasSuffix(".QuotaExceeded") == true)
            let bytes = await failure { try await store.set("b", .data([UInt8](repeating: 1, count: 8192))) }
            #expect(bytes?.message.contains("8192") == true, "\(bytes?.message ?? "")")
            guard case .dictionary(let limits) = try await limits(store) else { throw CocoaError(.coderInvalidValue) }
            #expect(limits["keys"] == .integer(2) && limits["total-bytes"] == .integer(8192))
        }
    }

    @Test func `devices that exceed the settings' limit together are told of that limit`() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/settings.conf"
        try Data("[Store]\nKeys=4\n".utf8).write(to: URL(filePath: path))
        try await withTwoDevices({ $0.arguments = ["--configuration", path] }) { devices in
            try await devices.join()
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await phone.client.account.setPaused(true)
            try await laptop.apply(["a": .integer(1), "b": .integer(1), "c": .integer(1)])
            try await phone.apply(["d": .integer(1), "e": .integer(1), "f": .integer(1)])
            try await phone.subscribe()
            try await phone.client.account.setPaused(false)
            _ = try await devices.converge()
            let signal = try await phone.signal("too much") { $0.reason == 2 }
            #expect(signal.keys.count == 2)
            #expect(signal.info == ["limit": "keys", "needed": .integer(6), "available": .integer(0)])
        }
    }

    @Test func `a user may not have more stores than the settings say, and those that are there go on`() async throws {
        try await withSettings("[User]\nStores=2\n", manifests: 3) { machine, _ in
            let client = try machine.client()
            let (first, second, third) = (
                try client.store("org.example.Notes"), try client.store("org.example.Notes1"),
                try client.store("org.example.Notes2")
            )
            try await first.set("key", .integer(1))
            try await second.set("key", .integer(1))
            let refused = await failure { try await third.set("key", .integer(1)) }
            #expect(refused?.name == "org.freedesktop.DBus.Error.LimitsExceeded")
            #expect(refused?.message.contains("2 stores") == true)
            try await first.set("key", .integer(2))
            #expect(try await third.everything().isEmpty)
        }
    }

    @Test func `a user's database may not get larger than the settings say, and removing still works`() async throws {
        try await withSettings("[User]\nDatabaseBytes=1M\n", manifests: 3) { machine, _ in
            let client = try machine.client()
            let first = try client.store("org.example.Notes")
            let megabyte = Value.data([UInt8](repeating: 1, count: 700 << 10))
            try await first.set("key", megabyte)
            let refused = await failure { try await client.store("org.example.Notes1").set("key", megabyte) }
            #expect(refused?.name.hasSuffix(".QuotaExceeded") == true)
            #expect(refused?.message.contains("database-bytes") == true, "\(refused?.message ?? "")")
            try await first.remove("key")
            #expect(try await first.everything().isEmpty)
        }
    }

    @Test func `where a user's database is as large as it may be, history gives way to values`() async throws {
        try await withSettings("[User]\nDatabaseBytes=1M\n") { machine, _ in
            let store = try machine.store()
            func page(_ number: Int) -> Value { .data([UInt8](repeating: UInt8(number % 256), count: 3700)) }
            // Far more than fits with the replaced values, and much less without them.
            for round in 0..<600 { try await store.set("key", page(round)) }
            #expect(try await store.value("key") == page(599))
            // At the limit with live values, removing what the error names makes room.
            var count = 0
            var refused: BusError?
            while refused == nil {
                refused = await failure { try await store.set("live \(count)", page(1)) }
                count += 1
            }
            #expect(refused?.name.hasSuffix(".QuotaExceeded") == true && count > 150, "\(count)")
            #expect(refused?.message.contains("Remove values, stores or domains") == true, "\(refused?.message ?? "")")
            // What is there can be replaced, by as much or less.
            for number in 0..<100 { try await store.set("live \(number)", page(2)) }
            for number in 100..<110 { try await store.set("live \(number)", .integer(Int64(number))) }
            for number in 0..<20 { try await store.remove("live \(number)") }
            try await store.set("live", page(2))
        }
    }

    @Test func `a value that takes more than half of the room can be replaced, and history stays within bounds`()
        async throws
    {
        try await withSettings("[User]\nDatabaseBytes=1M\n") { machine, _ in
            let store = try machine.store()
            for round in 0..<20 {
                try await store.set("key", .data([UInt8](repeating: UInt8(round), count: 900 << 10)))
            }
            #expect(try await store.value("key") == .data([UInt8](repeating: 19, count: 900 << 10)))
            let refused = await failure {
                try await store.set("key", .data([UInt8](repeating: 1, count: 1000 << 10)))
                try await store.set("other", .data([UInt8](repeating: 1, count: 500 << 10)))
            }
            #expect(refused?.name.hasSuffix(".QuotaExceeded") == true)
            let file = "\(machine.device.stateDirectory)/u\(store.client.uid)/stores.sqlite"
            let size = try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int
            #expect(try #require(size) < 3 << 20)
        }
    }

    @Test func `calls beyond those of a connection that may wait are refused, and the others answered`() async throws {
        try await withSettings("[User]\nWaitingCalls=1\n") { machine, _ in
            let store = try machine.store()
            try await store.set("key", .integer(1))
            let outcomes = try await atOnce(40) { _ in await errorName { try await store.synchronize() } }
            #expect(Set(outcomes) == ["", "LimitsExceeded"])
            try await store.synchronize()
        }
    }

    @Test func `a reload applies other settings, and no client is lost`() async throws {
        try await withSettings("[User]\nSubscriptionsPerConnection=1\n", manifests: 2) { machine, write in
            let client = try machine.client()
            let (first, second) = (try client.store("org.example.Notes"), try client.store("org.example.Notes1"))
            try await first.subscribe()
            #expect(await errorName { try await second.subscribe() } == "LimitsExceeded")
            try write("[User]\nSubscriptionsPerConnection=2\n")
            #expect(await reload(machine) == nil)
            try await second.subscribe()
            try await first.set("key", .integer(1))
            #expect(try await first.value("key") == .integer(1))
            try write("[User]\nSubscriptionsPerConnection=1\n")
            machine.device.signal(SIGHUP)
            try await eventually("the settings are read again") {
                machine.device.log.components(separatedBy: "were read again").count == 3
            }
            #expect(try await first.value("key") == .integer(1))
        }
    }

    @Test func `settings that aren't right leave those that are in force, and the log and the caller have the line`()
        async throws
    {
        try await withSettings("[Store]\nKeys=7\n[User]\nSubscriptionsPerConnection=1\n") { machine, write in
            try write("[User]\nSubscriptionsPerConnection=2\nStores=many\n")
            let refused = await reload(machine)
            #expect(refused?.name == "org.freedesktop.DBus.Error.InvalidFileContent")
            #expect(refused?.message.contains("line 3") == true && refused?.message.contains("65536") == true)
            #expect(machine.device.log.contains("line 3"))
            guard case .dictionary(let limits) = try await limits(machine.store()) else {
                throw CocoaError(.coderInvalidValue)
            }
            #expect(limits["keys"] == .integer(7))
        }
    }

    @Test func `a service begins with what is right of its settings, and says what isn't`() async throws {
        try await withSettings("[Service]\nIdleExit=soon\n[Store]\nKeys=7\n") { machine, write in
            guard case .dictionary(let limits) = try await limits(machine.store()) else {
                throw CocoaError(.coderInvalidValue)
            }
            #expect(limits["keys"] == .integer(7))
            #expect(try await settingsErrors(machine).first?.contains("line 2") == true)
            try write("[Service]\nIdleExit=1min\n")
            #expect(await reload(machine) == nil)
            #expect(try await settingsErrors(machine) == [])
            try write("[Service]\nIdleExit=1min\n[User]\nStores=many\n")
            #expect(await reload(machine) != nil)
            #expect(try await settingsErrors(machine).first?.contains("line 4") == true)
            // No message can carry this character.
            try write("[Service]\nIdleExit=1min\0\n")
            #expect(await reload(machine) != nil)
            #expect(try await settingsErrors(machine).first?.contains("line 2") == true)
            try write(nil)
            #expect(await reload(machine) != nil)
            #expect(try await settingsErrors(machine).first?.contains("there is no such file") == true)
        }
    }

    @Test func `settings that can't be read keep no app from its store, and every account from its remote`()
        async throws
    {
        let directory = try TemporaryDirectory()
        let path = try directory.makeDirectory("settings.conf", mode: 0o755)
        try await withMachine {
            $0.arguments = ["--configuration", path]
        } _: { machine in
            let store = try machine.store()
            try await store.set("key", .integer(1))
            #expect(try await store.value("key") == .integer(1))
            let account = try machine.client().account
            let error = await failure { try await account.signIn("webdav://127.0.0.1:1/x") }
            #expect(error?.name == "org.freedesktop.DBus.Error.AccessDenied")
            #expect(try await settingsErrors(machine).first?.contains("not a regular file") == true)
        }
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot), arguments: ["a directory", "a link"])
    func `settings beside the file that can't be read keep every account from its remote`(what: String) async throws {
        let directory = try TemporaryDirectory()
        chmod(directory.path, 0o755)
        let path = directory.path + "/settings.conf"
        try Data("[Service]\nIdleExit=5min\n".utf8).write(to: URL(filePath: path))
        let drop = try directory.makeDirectory("settings.conf.d", mode: what == "a directory" ? 0o700 : 0o755)
        if what == "a link" { symlink("/nonexistent", drop + "/policy.conf") }
        try await withMachine {
            $0.arguments = ["--configuration", path]
        } _: { machine in
            let account = try machine.client().account
            #expect(await errorName { try await account.signIn("webdav://127.0.0.1:1/x") } == "AccessDenied")
            let errors = try await settingsErrors(machine)
            #expect(errors.count == 1 && errors[0].contains(drop) && errors[0].contains("can't be read"), "\(errors)")
        }
    }

    @Test func `the default account has the user's name in its address`() async throws {
        let text = "[Sync]\nDefaultAccount=folder:///srv/%u/%U\n"
        try await withSettings(text) { machine, _ in
            let client = try machine.client()
            let name = try #require(getpwuid(client.uid).map { String(cString: $0.pointee.pw_name) })
            let address = try await client.property(
                BusNames.accountPath(uid: client.uid), BusNames.accountInterface, "DefaultBackend")
            #expect(address == .string(Text("folder:///srv/\(name)/\(client.uid)")))
        }
    }

    private func settingsErrors(_ machine: Machine) async throws -> [String] {
        let errors = try await machine.client().property(
            BusNames.managerPath, BusNames.managerInterface, "SettingsErrors")
        guard case .array(let sentences) = errors else { return [] }
        return sentences.compactMap { if case .string(let text) = $0 { text.string } else { nil } }
    }

    @Test func `settings are checked before a service begins with them, all of them at once`() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/settings.conf"
        // Where the package is installed, root's check reads the files as the service's user.
        chmod(directory.path, 0o755)
        try Data("[Service]\nIdleExit=soon\n".utf8).write(to: URL(filePath: path))
        let checked = try await run([Device.program(), "--check-configuration", "--configuration", path])
        #expect(checked.exit == .code(78))
        #expect(checked.error.contains("line 2") && checked.error.contains("5min"))
        let drop = try directory.makeDirectory("settings.conf.d", mode: 0o755)
        try Data("[Sync]\nFolderRoot=/nonexistent\nLongestPoll=1\n".utf8).write(to: URL(filePath: drop + "/a.conf"))
        let both = try await run([Device.program(), "--check-configuration", "--configuration", path])
        for words in ["line 2", "FolderRoot=/nonexistent can't be used", "ShortestPoll= is longer"] {
            #expect(both.error.contains(words))
        }
        let (folder, link) = (try directory.makeDirectory("folder", mode: 0o777), directory.path + "/link")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: folder)
        try Data("[Sync]\nFolderRoot=\(link)\n".utf8).write(to: URL(filePath: drop + "/a.conf"))
        let linked = try await run([Device.program(), "--check-configuration", "--configuration", path])
        #expect(linked.error.contains("symbolic link") && linked.error.contains("Name \(folder) instead"), "\(linked)")
        let command = [try Device.program(), "--check-configuration", "--configuration", path, "--mode", "system"]
        try Data("[Sync]\nFolderRoot=\(folder)\n".utf8).write(to: URL(filePath: drop + "/a.conf"))
        for (root, isTold) in [(try directory.makeDirectory("other", mode: 0o755), true), (folder, false)] {
            let replaced = try await run(command + ["--folder-root", root])
            #expect(replaced.error.contains("FolderRoot= in the settings isn't used") == isTold, "\(replaced)")
        }
        let own = try await run(command + ["--state-directory", folder + "/state"])
        #expect(own.error.contains("isn't apart from the service's own data"), "\(own)")
        try Data("[Sync]\nDefaultAuthority=/etc/passwd\nDefaultAccount=webdavs://a/b\n".utf8)
            .write(to: URL(filePath: drop + "/a.conf"))
        let strange = try await run([Device.program(), "--check-configuration", "--configuration", path])
        #expect(
            strange.error.contains("a.conf, line 2: DefaultAuthority=/etc/passwd has no certificate in PEM"),
            "\(strange)")
        try Data("[Sync]\nDefaultAccount=webdavs://user:a-secret@a/b?c\n".utf8)
            .write(to: URL(filePath: drop + "/a.conf"))
        let open = try await run([Device.program(), "--check-configuration", "--configuration", path])
        #expect(open.error.contains("everybody can read it") && !open.error.contains("a-secret"), "\(open)")
        try FileManager.default.removeItem(atPath: drop)
        try Data("[Service]\nIdleExit=5min\n".utf8).write(to: URL(filePath: path))
        #expect(try await run([Device.program(), "--check-configuration", "--configuration", path]).exit == .code(0))
    }

    @Test func `a scheme that the settings don't allow is denied`() async throws {
        try await withSettings("[Sync]\nBackends=webdavs\n") { machine, _ in
            let account = try machine.client().account
            #expect(await errorName { try await account.signIn("folder:///tmp/nothing") } == "AccessDenied")
        }
    }

    @Test func `other backends hold for who signs in later, and who is signed in goes on`() async throws {
        let place = try TemporaryDirectory()
        let folder = try place.makeDirectory("folder", mode: 0o700, owner: Users.client)
        try await withSettings("") { machine, write in
            // In user mode a folder must belong to the user who signs in: here, to the service's own user.
            let client = try machine.client(as: Users.service)
            let own = try place.makeDirectory("own", mode: 0o700, owner: Users.service)
            try await client.account.join("folder://\(own)")
            try write("[Sync]\nBackends=webdavs\n")
            #expect(await reload(machine) == nil)
            try await client.store(notes).set("key", .integer(1))
            try await client.account.syncNow()
            #expect(try await client.account.property("PendingChanges") == .integer(0))
            let other = try machine.client().account
            #expect(await errorName { try await other.signIn("folder://\(folder)") } == "AccessDenied")
            try write("[Sync]\nBackends=folder\n")
            #expect(await reload(machine) == nil)
            #expect(await errorName { try await other.signIn("webdavs://127.0.0.1:1/") } == "AccessDenied")
        }
        withExtendedLifetime(place) {}
    }

    @Test func `a change waits for others as long as the settings say, and no longer once they say so`() async throws {
        let place = try TemporaryDirectory()
        try await withSettings("[Sync]\nCoalescing=1h\n") { machine, write in
            let client = try machine.client(as: Users.service)
            let account = client.account
            try await account.join("folder://\(try place.makeDirectory("own", mode: 0o700, owner: Users.service))")
            try await client.store(notes).set("key", .integer(1))
            // Longer than a folder's changes wait by default.
            try await Task.sleep(for: .seconds(3))
            #expect(try await account.property("PendingChanges") == .integer(1))
            try write("[Sync]\nCoalescing=0\n")
            #expect(await reload(machine) == nil)
            try await eventually("the change is uploaded") {
                try await account.property("PendingChanges") == .integer(0)
            }
        }
        withExtendedLifetime(place) {}
    }

    @Test func `an account that is not allowed any more says so, and goes on when it is`() async throws {
        let place = try TemporaryDirectory()
        try await withSettings("") { machine, write in
            let client = try machine.client(as: Users.service)
            let (account, store) = (client.account, try client.store(notes))
            let own = try place.makeDirectory("own", mode: 0o700, owner: Users.service)
            try await account.join("folder://\(own)")
            try await store.set("key", .integer(1))
            try await account.syncNow()
            let names = ["AccountIdentifier", "Backend", "InitialSyncDone", "LastPullUSec", "DeviceName"]
            func known() async throws -> [Value] {
                var values: [Value] = []
                for name in names { values.append(try await account.property(name)) }
                return values
            }
            let before = try await known()
            try write("[Sync]\nBackends=webdavs\n")
            try await machine.device.restart()
            #expect(try await store.value("key") == .integer(1))
            #expect(try await account.property("State") == .string("error"))
            #expect(try await known() == before)
            #expect(await errorName { try await account.syncNow() } == "AccessDenied")
            try write("")
            #expect(await reload(machine) == nil)
            try await account.syncNow()
            #expect(try await account.property("State") == .string("idle"))
            #expect(try await account.property("LastErrorName") == .string(""))
        }
        withExtendedLifetime(place) {}
    }

    @Test func `where encryption is required no unencrypted account is made or joined`() async throws {
        let place = try TemporaryDirectory()
        let folders = try ["new", "plain"].map { try place.makeDirectory($0, mode: 0o700, owner: Users.service) }
        try await withSettings("") { machine, write in
            let account = try machine.client(as: Users.service).account
            try await account.join("folder://\(folders[1])")
            try await account.signOut()
            try write("[Sync]\nRequireEncryption=yes\n")
            #expect(await reload(machine) == nil)
            for folder in folders {
                let before = try FileManager.default.subpathsOfDirectory(atPath: folder)
                #expect(await errorName { try await account.signIn("folder://\(folder)") } == "AccessDenied")
                #expect(try FileManager.default.subpathsOfDirectory(atPath: folder) == before)
            }
            let steps = try await account.check("folder://\(folders[1])")
            #expect(steps.last?["step"] == "encryption" && steps.last?["ok"] == .boolean(false))
            #expect(try await account.check("folder://\(folders[0])").last?["ok"] == .boolean(true))
            for encrypts in [false, true] {
                let steps = try await account.check(
                    "folder://\(folders[0])", ["create": .boolean(true), "encrypt": .boolean(encrypts)])
                #expect(steps.last?["ok"] == .boolean(encrypts))
            }
            #expect(try await account.property("State") == .string("signed-out"))
            try await account.join("folder://\(folders[0])", ["encrypt": .boolean(true)])
            #expect(try await account.property("Encrypted") == .boolean(true))
            #expect(await errorName { try await account.signIn("folder://\(folders[1])") } == "AccessDenied")
            try await account.syncNow()
        }
        withExtendedLifetime(place) {}
    }

    @Test func `an unencrypted account stops where encryption is required, until it is encrypted, and nothing is lost`()
        async throws
    {
        let place = try TemporaryDirectory()
        let folder = try place.makeDirectory("folder", mode: 0o700, owner: Users.service)
        func files() throws -> [String: Data] {
            try FileManager.default.subpathsOfDirectory(atPath: folder).reduce(into: [:]) {
                $0[$1] = FileManager.default.contents(atPath: folder + "/" + $1)
            }
        }
        try await withSettings("") { machine, write in
            let client = try machine.client(as: Users.service)
            let (account, store) = (client.account, try client.store(notes))
            try await account.join("folder://\(folder)")
            try await store.set("before", .integer(1))
            try await account.syncNow()
            let before = try files()
            try write("[Sync]\nRequireEncryption=yes\n")
            try await machine.device.restart()
            try await store.set("while it stands", .integer(2))
            #expect(try await account.lastError() == "AccessDenied")
            #expect(try await account.text("LastErrorMessage").contains("account encrypt"))
            #expect(await errorName { try await account.syncNow() } == "AccessDenied")
            // An unreadable remote must not make the account continue unencrypted.
            try FileManager.default.moveItem(atPath: folder, toPath: folder + ".away")
            #expect(await errorName { try await account.encrypt() } != "")
            #expect(try await account.lastError() == "AccessDenied")
            try FileManager.default.moveItem(atPath: folder + ".away", toPath: folder)
            #expect(try files() == before)
            try await account.setPaused(true)
            #expect(await errorName { try await account.encrypt() } == "BackendUnavailable")
            #expect(try files() == before)
            #expect(machine.device.keyFiles.isEmpty)
            try await account.setPaused(false)
            try await account.encrypt()
            try await account.syncNow()
            #expect(try await account.property("State") == .string("idle"))
            let phrase = try await account.recoveryPhrase(flags: 1)
            try await account.signOut(keepingValues: false)
            try await account.join("folder://\(folder)", ["recovery-phrase": .string(Text(phrase))])
            #expect(try await store.everything() == ["before": .integer(1), "while it stands": .integer(2)])
        }
        withExtendedLifetime(place) {}
    }

    @Test(.enabled(if: Users.areSeveral, Users.needsRoot))
    func `other folder roots hold for who signs in later, and who is signed in goes on`() async throws {
        let place = try TemporaryDirectory()
        let roots = try ["one", "two"].map { try place.makeDirectory($0, mode: 0o755, owner: Users.service) }
        chmod(place.path, 0o755)
        let path = place.path + "/settings.conf"
        func write(_ root: String) throws {
            try Data("[Sync]\nFolderRoot=\(root)\n".utf8).write(to: URL(filePath: path))
            chmod(path, 0o644)
        }
        try write(roots[0])
        try await withMachine {
            $0.mode = "system"
            $0.arguments = ["--configuration", path]
        } _: { machine in
            let (first, second) = (try machine.client(as: Users.nobody), try machine.client(as: Users.daemon))
            #expect(await errorName { try await first.account.signIn("folder://\(roots[1])") } == "AccessDenied")
            try await first.account.join("folder://\(roots[0])")
            try write(roots[1])
            #expect(await reload(machine) == nil)
            try await first.store(notes).set("key", .integer(1))
            try await first.account.syncNow()
            #expect(try await first.account.property("PendingChanges") == .integer(0))
            #expect(await errorName { try await second.account.signIn("folder://\(roots[0])") } == "AccessDenied")
            try await second.account.join("folder://\(roots[1])")
        }
        withExtendedLifetime(place) {}
    }

    @Test func `a user's subscriptions and registered manifests are bounded by the settings, at once after a reload`()
        async throws
    {
        try await withSettings("[User]\nSubscriptions=2\nRegisteredManifests=1\n") { machine, write in
            let stores = try (0..<4).map { _ in try machine.store() }
            func register(_ name: String) async -> String {
                await errorName {
                    try await machine.client().manager("RegisterManifest") {
                        try $0.append(bytes: Array(ManifestText(name).xml.utf8))
                        try $0.appendDictionary {}
                    }
                }
            }
            for store in stores[..<2] { try await store.subscribe() }
            #expect(await errorName { try await stores[2].subscribe() } == "LimitsExceeded")
            #expect(await register("org.example.One") == "")
            #expect(await register("org.example.Two") == "LimitsExceeded")
            try write("[User]\nSubscriptions=3\nRegisteredManifests=2\n")
            #expect(await reload(machine) == nil)
            try await stores[2].subscribe()
            #expect(await errorName { try await stores[3].subscribe() } == "LimitsExceeded")
            #expect(await register("org.example.Two") == "")
        }
    }

    @Test func `a reload to the level debug tells the steps of an account that is signed in`() async throws {
        let directory = try TemporaryDirectory()
        chmod(directory.path, 0o755)
        let path = directory.path + "/settings.conf"
        let folder = try directory.makeDirectory("folder", mode: 0o700)
        func write(_ level: String) throws {
            try Data("[Service]\nLogLevel=\(level)\n".utf8).write(to: URL(filePath: path))
        }
        try write("notice")
        let bus = try await PrivateBus.start()
        let device = try await start(on: bus, in: directory, path, "--folder-root", directory.path)
        let client = try BusClient(bus)
        try await client.account.signIn("folder://\(folder)")
        try await client.account.syncNow()
        #expect(!device.log.contains("polls"), "\(device.log)")
        try write("debug")
        try await client.manager("Reload")
        try await client.account.syncNow()
        #expect(device.log.contains(" polls: "), "\(device.log)")
        try write("notice")
        try await client.manager("Reload")
        let count = device.log.components(separatedBy: " polls: ").count
        try await client.account.syncNow()
        #expect(device.log.components(separatedBy: " polls: ").count == count)
    }

    @Test func `the file says what the command line doesn't`() async throws {
        let directory = try TemporaryDirectory()
        chmod(directory.path, 0o755)
        let path = directory.path + "/settings.conf"
        let write: (String) throws -> Void = {
            try Data("[Service]\nDeviceName=From the file\nLogLevel=warning\n\($0)".utf8).write(to: URL(filePath: path))
        }
        try write("IdleExit=0\n")
        let bus = try await PrivateBus.start()
        let device = try await start(on: bus, in: directory, path)
        let account = try BusClient(bus).account
        #expect(try await account.property("DeviceName") == .string("From the file"))
        account.client.connection.close()
        // The notice that the service is ready isn't a warning.
        #expect(device.log.isEmpty, "\(device.log)")
        device.kill()
        // The test makes no call, because on a busy machine the idle second would be over before it.
        try write("IdleExit=1\n")
        #expect(try await device.launch().finish() == .code(0))
    }
}
