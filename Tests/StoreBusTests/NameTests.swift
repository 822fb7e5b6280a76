// SPDX-License-Identifier: Apache-2.0

import SDBus
import StoreBus
import Testing

struct NameTests {
    @Test func `a store's path has the user's number and the identifier as libsystemd writes it`() throws {
        #expect(
            try BusNames.storePath(uid: 1000, identifier: "org.example.Notes")
                == "/org/example/UbiquitousStore/v1/u1000/org_2eexample_2eNotes"
        )
        #expect(
            try BusNames.storePath(uid: nil, identifier: "9.a-b_c")
                == "/org/example/UbiquitousStore/v1/self/_39_2ea_2db_5fc"
        )
        #expect(BusNames.accountPath(uid: 0) == "/org/example/UbiquitousStore/v1/u0")
        #expect(BusNames.accountPath(uid: nil) == "/org/example/UbiquitousStore/v1/self")
    }

    @Test func `the errors are all below the service's name`() {
        #expect(StoreErrorCode.allCases.allSatisfy { $0.name == "org.example.UbiquitousStore.Error.\($0.rawValue)" })
        #expect(BusError.store(.conflict, "why").name == "org.example.UbiquitousStore.Error.Conflict")
    }
}
