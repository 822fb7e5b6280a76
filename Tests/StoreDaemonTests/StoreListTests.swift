// SPDX-License-Identifier: Apache-2.0

import SDBus
import Testing

@testable import StoreDaemon

struct StoreListTests {
    private func list(_ stores: (uid: UInt32, count: Int)...) throws -> StoreList {
        var list = StoreList()
        for (uid, count) in stores {
            for number in 0..<count { try list.add(String(repeating: "s", count: 240) + "\(1000 + number)", of: uid) }
        }
        return list
    }

    private func counts(_ entries: [StoreList.Entry]) -> [UInt32: Int] {
        Dictionary(entries.map { ($0.uid, 1) }, uniquingKeysWith: +)
    }

    @Test func `stores that there is room for are all listed, in their order`() throws {
        let list = try list((1, 3), (2, 1), (9, 2))
        let entries = list.entries(atMost: 1 << 20)
        #expect(entries.map(\.uid) == [1, 1, 1, 2, 9, 9])
        #expect(entries.first?.path == "/org/example/UbiquitousStore/v1/u1/\(entries[0].identifier)")
        #expect(StoreList().entries(atMost: 1 << 20) == [])
    }

    @Test func `a user with more stores than there is room for takes none of the others' room`() throws {
        let list = try list((1, 5), (2, 9000), (3, 100))
        let found = counts(list.entries(atMost: 1 << 20))
        #expect(found[1] == 5 && found[3] == 100)
        #expect(found[2, default: 0] > 1000)
        let two = counts(try self.list((1, 9000), (2, 9000), (3, 1)).entries(atMost: 1 << 20))
        #expect(two[1] == two[2] && two[3] == 1)
    }

    @Test func `what is listed fits into an answer`() throws {
        let list = try list((1, 9000), (2, 9000), (3, 1), (4, 5000))
        for bytes in [0, 100, 1 << 16, 1 << 20, 8 << 20] {
            let size = list.entries(atMost: bytes).reduce(0) { $0 + $1.size }
            #expect(size <= bytes)
        }
    }
}
