// SPDX-License-Identifier: Apache-2.0

import Files
import Logging
import PropertyList
import Replication
import Sealing
import SyncEngine
import Synchronization
import Testing

@testable import StoreDaemon

struct SettingsTests {
    @Test(arguments: [
        ("/srv/a", "/srv/a", true), ("/srv/a/b", "/srv/a", true), ("/srv", "/srv/a", true), ("/", "/srv/a", true),
        ("/srv/ab", "/srv/a", false), ("/srv/b", "/srv/a", false),
    ]) func `a folder root is apart from the state directory`(root: String, state: String, isRefused: Bool) {
        #expect(Configuration.overlap(root, state) == isRefused)
    }

    @Test func `a folder root that the unit's sandbox mounts read-only is named, with the drop-in`() {
        let mounts = MountTable(
            """
            22 1 8:1 / / ro,relatime shared:1 - ext4 /dev/sda1 rw
            30 22 8:1 /srv/a /srv/a rw,relatime - ext4 /dev/sda1 rw
            31 22 8:2 / /srv/with\\040space rw - ext4 /dev/sdb1 rw
            32 31 8:2 / /srv/with\\040space ro - ext4 /dev/sdb1 rw
            """)
        #expect(mounts.problems(ofFolderRoots: ["/srv/a", "/srv/a/b"]).isEmpty)
        for path in ["/srv", "/srv/ab", "/srv/with space"] {
            let problem = mounts.problems(ofFolderRoots: [path]).first
            #expect(problem?.hasPrefix("FolderRoot=\(path) is read-only") == true, "\(path)")
            #expect(problem?.contains("folder-root.conf") == true)
        }
    }

    @Test func `a file that says nothing leaves everything as it is`() throws {
        #expect(try Settings(file: "") == Settings())
        #expect(try Settings(file: "# a comment\n\n; another\n[Service]\n[User]\n") == Settings())
    }

    @Test func `every setting is read`() throws {
        let settings = try Settings(
            file: """
                [Service]
                LogLevel = debug
                DeviceName=The desk in the kitchen = mine
                IdleExit=2min
                [Sync]
                FolderRoot=/srv/a
                FolderRoot=/srv/b
                Backends=folder webdavs
                RequireEncryption=yes
                Coalescing=3
                ShortestPoll=10s
                LongestPoll=1h
                [Store]
                Keys=10
                TotalBytes=64K
                [Domain]
                Keys=20
                TotalBytes=128K
                [User]
                Stores=3
                DatabaseBytes=2M
                Subscriptions=4
                SubscriptionsPerConnection=5
                RegisteredManifests=0
                WaitingCalls=6
                """)
        var expected = Settings()
        expected.logLevel = .debug
        expected.deviceName = "The desk in the kitchen = mine"
        expected.ask(forIdleExit: .seconds(120))
        expected.folderRoots = ["/srv/a", "/srv/b"]
        expected.backends = ["folder", "webdavs"]
        expected.requiresEncryption = true
        (expected.pace.coalescing, expected.pace.shortestPoll) = (.seconds(3), .seconds(10))
        expected.pace.longestPoll = .seconds(3600)
        (expected.limits.keys, expected.limits.totalBytes) = (10, 65536)
        (expected.layerLimits.keys, expected.layerLimits.totalBytes) = (20, 131_072)
        (expected.bounds.stores, expected.bounds.databaseBytes) = (3, 2 << 20)
        (expected.bounds.subscriptions, expected.bounds.subscriptionsPerConnection) = (4, 5)
        (expected.bounds.registeredManifests, expected.bounds.waitingCalls) = (0, 6)
        #expect(settings == expected)
    }

    @Test(arguments: ["\r\n", "\r", "\n"], ["# a comment", "\u{FEFF}# a comment", "\u{FEFF}"])
    func `a file of an editor on another system is read`(end: String, first: String) throws {
        let lines = [first, "[Sync]", "RequireEncryption=yes", "Backends=folder", ""]
        let settings = try Settings(file: lines.joined(separator: end))
        #expect(settings.requiresEncryption && settings.backends == ["folder"])
        let (_, errors) = Settings.read([SettingsFile(path: "", text: (lines + ["Frob=1"]).joined(separator: end))])
        #expect(errors.map(\.line) == [6])
    }

    @Test func `a line that isn't right leaves the others, in every file, and later files count`() {
        let (settings, errors) = Settings.read([
            SettingsFile(path: "/a", text: "[Service]\nIdleExit=soon\nDeviceName=desk\n[Sync]\nFolderRoot=/srv/a"),
            SettingsFile(path: "/a.d/1", text: "[Sync]\nFolderRoot=/srv/b\n[Srvice]\nDeviceName=lost"),
            SettingsFile(path: "/a.d/2", text: "[Service]\nDeviceName=table\n[User]\nStores=3"),
        ])
        #expect(settings.deviceName == "table" && settings.folderRoots == ["/srv/a", "/srv/b"])
        #expect(settings.bounds.stores == 3 && settings.idleExit == Settings().idleExit)
        #expect(errors.map { "\($0)".prefix(15) } == ["/a, line 2: Idl", "/a.d/1, line 3:", "/a.d/1, line 4:"])
        let cleared = Settings.read([
            SettingsFile(path: "", text: "[Sync]\nFolderRoot=/srv/a"),
            SettingsFile(path: "", text: "[Sync]\nFolderRoot=\nFolderRoot=/srv/b"),
        ])
        #expect(cleared.settings.folderRoots == ["/srv/b"] && cleared.errors.isEmpty)
        let takenBack = Settings.read([
            SettingsFile(
                path: "",
                text: """
                    [Service]
                    DeviceName=desk
                    [Sync]
                    Coalescing=5
                    DefaultAccount=webdavs://host/%u
                    DefaultAuthority=/ca.pem
                    """),
            SettingsFile(
                path: "", text: "[Service]\nDeviceName=\n[Sync]\nCoalescing=\nDefaultAccount="),
        ])
        #expect(takenBack.settings == Settings() && takenBack.errors.isEmpty)
        let untrusted = Settings.read([
            SettingsFile(path: "", text: "[Sync]\nDefaultAccount=webdavs://host/%u\nDefaultAuthority=/ca.pem"),
            SettingsFile(path: "", text: "[Sync]\nDefaultAuthority="),
        ])
        #expect(
            untrusted.settings.defaultAccount == DefaultAccount(address: "webdavs://host/%u")
                && untrusted.errors.isEmpty)
        let odd = Settings.read([
            SettingsFile(path: "", text: "[Sync]\nFolderRoot=/srv//a/./b/\nFolderRoot=/\nFolderRoot=/srv/../b")
        ])
        #expect(odd.settings.folderRoots == ["/srv/a/b", "/"] && odd.errors.map(\.line) == [4])
    }

    @Test(
        arguments: [
            ("[Sync]\nBackends=folder gopher", ["folder"]), ("[Sync]\nBackends=gopher", []),
            ("[Sync]\nBakcends=folder webdavs", ["folder", "webdavs"]), ("[Snc]\nBackends=webdavs", ["webdavs"]),
            ("Backends=etcds", ["etcds"]), ("[Sync]\nBackends folder", ["folder"]),
            ("[Sync]\nBackends=folder\nBackends=webdavs", []),
            ("[Sync]\nBackends=folder webdavs\nBackends=webdavs", ["webdavs"]),
            ("[Sync] Backends=webdavs", ["webdavs"]),
            ("[Sync]\nBackend=webdavs,etcds", ["webdavs", "etcds"]),
            ("[Sync]\nBackend=webdavs\tetcds", ["webdavs", "etcds"]),
            ("[Sync]\nBackend=\"webdavs folder\"", ["webdavs", "folder"]), ("[Sync]\nBackends", []),
            ("[Sync]\nBackends: etcds", ["etcds"]), ("[Sync]\nBackends=WebDAVs", ["webdavs"]),
            ("\0[\0S\0]\0\nB\0a\0c\0k\0e\0n\0d\0s\0=\0e\0t\0c\0d\0s\0", ["etcds"]), ("[Sync]\nBackends:", []),
            ("[Sync]\nbackends=", []),
            ("[Sync]\nBackends=webdavs # no folder", ["webdavs"]),
        ] as [(String, Set<String>)])
    func `settings that aren't right never let accounts be where they may not`(text: String, backends: Set<String>) {
        let (settings, errors) = Settings.read([SettingsFile(path: "", text: text)])
        #expect(settings.backends == backends && errors.count >= 1)
    }

    @Test func `a slip that says nothing of accounts closes nothing`() {
        let (settings, _) = Settings.read([
            SettingsFile(
                path: "",
                text:
                    "[Service]\nIdleExit=yes\n[Sync]\nCoalesing=3\nnonsense\nDefaultAcount=webdavs://h/%u\n[Encryption]"
            )
        ])
        #expect(settings.backends == nil && !settings.requiresEncryption)
    }

    @Test(arguments: [
        "[Sync]\nRequireEncryption=ja", "[Sync]\nRequireEncrypton=yes", "[Snc]\nRequireEncryption=yes",
        "RequireEncryption=yes", "[Sync]\nRequireEncryption yes", "[Sync]\nRequireEncryption=no\nRequireEncryption=yes",
        "[Sync]\nRequire_Encryption = on", "[Sync] RequireEncryption=yes", "[Sync]\nRequireEncryption: Yes",
        "[Sync]\nRequireEncryption true", "[Sync]\nRequireEncryption yes.", "[Sync]\nRequireEncryption",
        "[Sync]\nRequireEncryption=no\nRequireEncryption=true", "[Sync]\nRequireEncryption=No way",
        "[Sync]\nRequireEncryption=yes # default: no", "[Sync]\nRequireEncryption=yes ; was no",
        "[RequireEncryption=yes]", "[Sync]\nRequireEncription=true", "[Sync]\nRequireEncrpytion=on",
        "[Sync]\nRequireEnryption=1", "[Sync]\nRequireEncyption=true", "[Sync]\nRequireCryption=true",
    ])
    func `settings that aren't right never let accounts be unencrypted that may not`(text: String) throws {
        let (settings, errors) = Settings.read([SettingsFile(path: "", text: text)])
        #expect(settings.requiresEncryption && errors.count >= 1)
        #expect(try !Settings(file: "[Sync]\nRequireEncryption=no").requiresEncryption)
    }

    @Test func `a default account that can't be encrypted contradicts the wish that accounts are`() throws {
        let settings = try Settings(file: "[Sync]\nRequireEncryption=yes\nDefaultAccount=etcds://host/%u")
        let code = Mutex(RemoteError.Code.unsupported)
        func found(_ settings: Settings) -> [String] {
            settings.accountContradictions { request throws(RemoteError) in
                throw RemoteError(request.protection.isWanted ? code.withLock { $0 } : .unavailable, "No.")
            }
        }
        #expect(found(settings).count == 1 && found(settings)[0].contains("can't be encrypted"))
        #expect(found(try Settings(file: "[Sync]\nDefaultAccount=etcds://host/%u")) == [])
        #expect(found(try Settings(file: "[Sync]\nRequireEncryption=yes")) == [])
        code.withLock { $0 = .unavailable }
        #expect(found(settings) == [], "it can't be known")
    }

    @Test func `a default account at what is no address is a mistake in the settings`() throws {
        let settings = try Settings(file: "[Sync]\nDefaultAccount=webdavs://host/%%u")
        let found = settings.accountContradictions { request throws(RemoteError) in
            throw RemoteError(.unsupported, "\(request.url) is none.")
        }
        #expect(found.count == 1 && found[0].hasSuffix("webdavs://host/%u is none."))
    }

    @Test(arguments: [
        ("[Sync]\nShortestPoll=1h\nLongestPoll=1min", "ShortestPoll="),
        ("[User]\nSubscriptions=2", "SubscriptionsPerConnection="),
        ("[User]\nDatabaseBytes=1M\n[Store]\nTotalBytes=4M", "DatabaseBytes="),
        ("[Sync]\nBackends=etcds\nFolderRoot=/srv", "folder"),
        ("[Sync]\nBackends=etcds\nDefaultAccount=webdavs://host/%u", "webdavs:"),
        ("[Sync]\nDefaultAuthority=/ca.pem", "DefaultAccount="),
        ("[Sync]\nDefaultAccount=webdavs://ada:secret@host/%u", "a user name"),
        ("[Sync]\nDefaultAccount=etcds://a,%u@b/x", "a user name"),
        ("[Sync]\nFolderRoot=/srv/a\nDefaultAccount=folder:///srv/b", "FolderRoot="),
    ])
    func `what contradicts itself is found`(text: String, words: String) throws {
        let settings = try Settings(file: text)
        #expect(settings.contradictions.count == 1 && settings.contradictions[0].contains(words))
        #expect(Settings().contradictions.isEmpty)
    }

    @Test func `what contradicts itself is named with the line of the first key in it that a file sets`() {
        var places = SettingsPlaces()
        let (settings, errors) = Settings.read(
            [
                SettingsFile(
                    path: "/a",
                    text: "[Domain]\nTotalBytes=4M\n[Sync]\nFolderRoot=/srv\nDefaultAccount=webdavs://a@b/x"),
                SettingsFile(path: "/a.d/1", text: "\n[Sync]\nDefaultAccount=webdavs://c@d/x\nLongestPoll=1"),
            ], &places)
        #expect(errors.isEmpty)
        let named = settings.contradictions.map(places.naming)
        #expect(named.map { $0.prefix(15) } == ["/a.d/1, line 4:", "/a.d/1, line 3:"], "\(named)")
        for sentence in ["TotalBytes= of a store is more.", "FolderRoot=/srv can't be used.", "Nothing is set."] {
            #expect(places.naming(sentence) == sentence)
        }
    }

    @Test func `the default account's address has the user's name and number`() throws {
        let settings = try Settings(file: "[Sync]\nDefaultAccount=webdavs://host/%u/%U/100%%")
        let account = try #require(settings.defaultAccount)
        #expect(account.address(user: "ada", uid: 7) == "webdavs://host/ada/7/100%")
        #expect(account.address(user: "WORK\\ada b", uid: 7)?.contains("/WORK%5Cada%20b/") == true)
        #expect(account.address(user: nil, uid: 7) == nil)
        for line in ["DefaultAccount=webdavs://host/%x", "DefaultAccount=host", "DefaultAccount=gopher://h/%u"] {
            #expect(throws: SettingsError.self) { try Settings(file: "[Sync]\n\(line)") }
        }
    }

    @Test func `to end when idle for no time is never to end`() throws {
        #expect(try Settings(file: "[Service]\nIdleExit=0").idleExit == nil)
    }

    @Test(arguments: [
        ("[Service]\nLogLevel=loud", 2, "notice"), ("[Service]\n\nLogLevl=info", 3, "LogLevel="),
        ("[Servce]", 1, "[Service]"), ("[Service", 1, "doesn't end with ]; the sections are [Service]"),
        ("[Service] # here", 1, "doesn't end with ]"), ("[User]\n = 4", 2, "no key before its ="),
        ("LogLevel=info", 1, "[Section]"),
        ("[Service]\nLogLevel", 2, "Key=value"), ("[Service]\nKeys=4", 2, "LogLevel="),
        ("[Store]\nKeys=0", 2, "from 1 to 4096"), ("[Store]\nKeys=-4", 2, "from 1 to 4096"),
        ("[Store]\nKeys=4\nKeys=5", 3, "set twice"), ("[Store]\nTotalBytes=1T", 2, "K, M or G"),
        ("[User]\nDatabaseBytes=99999999999999999999G", 2, "bytes"), ("[User]\nDatabaseBytes=9999999999G", 2, "bytes"),
        ("[Service]\nIdleExit=soon", 2, "5min"), ("[Service]\nIdleExit=25h", 2, "86400"),
        ("[Service]\nIdleExit=", 2, "a time of"), ("[Sync]\nFolderRoot=srv", 2, "absolute"),
        ("[Sync]\nBackends=folder gopher", 2, "webdavs"),
        ("[Sync]\nBackends=folder\nBackends=webdav", 3, "only FolderRoot= may be"),
        ("[User]\nStores=\u{661}", 2, "from 1"),
    ])
    func `what isn't right is refused with its line and what is allowed`(text: String, line: Int, allowed: String) {
        let error = #expect(throws: SettingsError.self) { try Settings(file: text) }
        #expect(error?.line == line)
        #expect(error?.reason.contains(allowed) == true, "\(error?.reason ?? "")")
    }
}
