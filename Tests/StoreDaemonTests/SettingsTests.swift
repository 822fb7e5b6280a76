// SPDX-License-Identifier: Apache-2.0

import Logging
import PropertyList
import Replication
import SyncEngine
import Testing

@testable import StoreDaemon

struct SettingsTests {
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
                Coalescing=3
                ShortestPoll=10s
                LongestPoll=1h
                [Store]
                Keys=10
                TotalBytes=64K
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
        expected.idleExit = .seconds(120)
        expected.folderRoots = ["/srv/a", "/srv/b"]
        expected.backends = ["folder", "webdavs"]
        (expected.pace.coalescing, expected.pace.shortestPoll) = (.seconds(3), .seconds(10))
        expected.pace.longestPoll = .seconds(3600)
        (expected.limits.keys, expected.limits.totalBytes) = (10, 65536)
        (expected.bounds.stores, expected.bounds.databaseBytes) = (3, 2 << 20)
        (expected.bounds.subscriptions, expected.bounds.subscriptionsPerConnection) = (4, 5)
        (expected.bounds.registeredManifests, expected.bounds.waitingCalls) = (0, 6)
        #expect(settings == expected)
    }

    @Test func `to end when idle for no time is never to end`() throws {
        #expect(try Settings(file: "[Service]\nIdleExit=0").idleExit == nil)
    }

    @Test(arguments: [
        ("[Service]\nLogLevel=loud", 2, "notice"), ("[Service]\n\nLogLevl=info", 3, "LogLevel="),
        ("[Servce]", 1, "[Service]"), ("[Service", 1, "[Service]"), ("LogLevel=info", 1, "[Section]"),
        ("[Service]\nLogLevel", 2, "Key=value"), ("[Service]\nKeys=4", 2, "LogLevel="),
        ("[Store]\nKeys=0", 2, "from 1 to 4096"), ("[Store]\nKeys=-4", 2, "from 1 to 4096"),
        ("[Store]\nKeys=4\nKeys=5", 3, "second time"), ("[Store]\nTotalBytes=1T", 2, "K, M or G"),
        ("[User]\nDatabaseBytes=99999999999999999999G", 2, "bytes"), ("[User]\nDatabaseBytes=9999999999G", 2, "bytes"),
        ("[Service]\nIdleExit=soon", 2, "5min"), ("[Service]\nIdleExit=25h", 2, "86400"),
        ("[Service]\nDeviceName=", 2, "255 bytes"), ("[Sync]\nFolderRoot=srv", 2, "absolute"),
        ("[Sync]\nBackends=folder gopher", 2, "webdavs"), ("[User]\nStores=\u{661}", 2, "from 1"),
    ])
    func `what isn't right is refused with its line and what is allowed`(text: String, line: Int, allowed: String) {
        let error = #expect(throws: SettingsError.self) { try Settings(file: text) }
        #expect(error?.line == line)
        #expect(error?.reason.contains(allowed) == true, "\(error?.reason ?? "")")
    }
}
