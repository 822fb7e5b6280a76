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

/// The names of data that was set aside.
struct DataNameTests {
    private func next(_ seconds: UInt64, besides names: [String]) -> String {
        DataNames.setAside(uid: 1000, user: "ada", seconds: seconds, besides: names)
    }

    @Test func `data that is set aside now is later than all that the user has`() {
        #expect(next(50, besides: []) == "u1000.ada.50")
        #expect(next(50, besides: ["u1000.ada.50", "u1000.ada.49"]) == "u1000.ada.51")
        // A number in between is free, because the oldest data was removed, but isn't used again.
        #expect(next(50, besides: ["u1000.ada.52", "u1000.ada.50"]) == "u1000.ada.53")
        #expect(next(50, besides: ["u1000.ada.4000"]) == "u1000.ada.4001")
    }

    @Test(arguments: ["u1000", "u1000.ada.b.60", "u100.ada.60", "u10000.ada.60", "u1000.ada.-1", "u1000.ada.x", "60"])
    func `others' names are none of the user's`(name: String) {
        #expect(next(50, besides: [name]) == "u1000.ada.50")
    }
}
