// SPDX-License-Identifier: Apache-2.0

import Files
import Foundation
import SDBus
import StoreBus
import Testing

@testable import StoreDaemon

/// Subordinate user ids, of which a user may have thousands.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct SubordinateUsersTests {
    private let file = FileManager.default.temporaryDirectory.appending(path: "subuid-\(UUID())").path

    private func write(_ text: String) throws { try text.write(toFile: file, atomically: true, encoding: .utf8) }

    @Test func `lines that are no ranges say nothing`() {
        let text = """
            ada:100000:65536
            1000:165536:1
            grace:4294967290:100
            # a comment
            :
            zero:0:100
            none:300000:0
            minus:-1:10
            much:1:4294967296
            """
        #expect(
            SubordinateUsers.ranges(in: text) == [
                100_000...165_535, 165_536...165_536, 4_294_967_290...4_294_967_295,
            ])
    }

    @Test func `the ids of a range are one, and a user's of the machine is its own`() throws {
        try write("ada:100000:65536\n")
        let users = UserLookup(patience: 60_000) { key in
            switch key {
            case .uid(100_007): .known(UserEntry(name: "eve", uid: 100_007))
            case .uid(100_008...100_009): .unknown
            default: .nobody
            }
        }
        let subordinates = SubordinateUsers(file, users: users) { [100_000, 100_009].contains($0) }
        let found = [99_999, 100_000, 100_007, 100_008, 100_009, 165_535, 165_536].map(subordinates.range)
        #expect(found == [nil, 100_000, nil, 100_000, nil, 100_000, nil])
        try write("ada:100000:65536\nada:165536:65536\n")
        #expect(subordinates.range(of: 165_536) == 165_536)
        try FileManager.default.removeItem(atPath: file)
        #expect(subordinates.range(of: 100_000) == nil)
    }

    @Test func `subordinate ids have nothing, however they ask, and one user's budget`() async throws {
        try write("ada:4000000:65536\n")
        let service = try LocalService(for: Credentials(uid: 4_000_711, pid: getpid())) {
            $0.subordinateUsersFile = file
        }
        let manager = BusNames.managerPath
        for (path, interface, member) in [
            (try service.storePath(), BusNames.storeInterface, "GetValue"),
            (BusNames.accountPath(uid: nil), BusNames.accountInterface, "SyncNow"),
            (manager, BusNames.managerInterface, "ListStores"),
            (manager, "org.freedesktop.DBus.Introspectable", "Introspect"),
            (manager, "org.freedesktop.DBus.Peer", "Ping"),
        ] {
            await #expect(throws: BusError.self, "\(member)") {
                do {
                    try await service.client.invoke(nil, path, interface, member)
                } catch let error as BusError {
                    #expect(error.name == "org.freedesktop.DBus.Error.AccessDenied", "\(member)")
                    throw error
                }
            }
        }
        #expect(service.daemon.users.all.isEmpty)
        try service.close()
        try FileManager.default.removeItem(atPath: file)
    }
}
