// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import StoreEngine
import Testing

@Suite struct StampTests {
    private let origin = Origin(bits: 7)
    private let other = Origin(bits: .max)

    private func stamp(_ wall: UInt64, _ counter: UInt16 = 0, provisional: Bool = false) -> Stamp {
        Stamp(isProvisional: provisional, wall: wall, counter: counter, origin: other)
    }

    @Test(
        arguments: [0, 1, 999, 1000, 1001, 4_070_908_800_000, (1 << 46) - 1] as [UInt64],
        [0, 7, 65_534, 65_535] as [UInt16]
    )
    func `a write's stamp is greater than what it replaces, whatever the clock says`(wall: UInt64, counter: UInt16) {
        let previous = stamp(wall, counter)
        for now in [0, 1000, 4_070_908_800_000, .max] as [UInt64] {
            let next = Stamp(after: previous, wall: now, origin: origin, isProvisional: false)
            #expect(next.wall < Stamp.wallLimit)
            if (wall, counter) == ((1 << 46) - 1, 65_535) {
                #expect((next.wall, next.counter) == (wall, counter))
            } else {
                #expect((previous.wall, previous.counter) < (next.wall, next.counter))
            }
        }
    }

    @Test func `the clock decides where it is ahead of what is replaced`() {
        let next = Stamp(after: stamp(1000, 5), wall: 2000, origin: origin, isProvisional: false)
        #expect(next == Stamp(isProvisional: false, wall: 2000, counter: 0, origin: origin))
    }

    @Test func `a full counter goes into the next millisecond`() {
        let next = Stamp(after: stamp(1000, .max), wall: 1000, origin: origin, isProvisional: false)
        #expect((next.wall, next.counter) == (1001, 0))
    }

    @Test func `a damaged stamp beyond all clocks has a successor too`() {
        let next = Stamp(after: stamp(.max, .max), wall: 1, origin: origin, isProvisional: false)
        #expect(next.wall == Stamp.wallLimit - 1)
    }

    @Test func `provisional is less than everything that is not`() {
        #expect(stamp(.max >> 20, .max, provisional: true) < stamp(0))
        #expect(!(stamp(0) < stamp(5, provisional: true)))
    }

    @Test func `what follows an ordinary write is ordinary, what follows a provisional one may be either`() {
        func follows(_ previous: Stamp?, provisional: Bool) -> Bool {
            Stamp(after: previous, wall: 1, origin: origin, isProvisional: provisional).isProvisional
        }
        #expect(follows(nil, provisional: true))
        #expect(!follows(nil, provisional: false))
        #expect(follows(stamp(1, provisional: true), provisional: true))
        #expect(!follows(stamp(1, provisional: true), provisional: false))
        #expect(!follows(stamp(1), provisional: true))
    }

    @Test func `writes in a store go on under a clock that goes back`() throws {
        let device = try Device()
        let store = try device.store()
        var previous: Stamp?
        for time in [4_070_908_800_000_000, 5_000_000, 0, 1_800_000_000_000_000, 1_799_000_000_000_000] as [UInt64] {
            device.clock.time = time
            try device.write([("k", .integer(Int64(time)))])
            let stamp = try #require(store.version(of: key("k"))?.stamp)
            if let previous { #expect(previous < stamp) }
            previous = stamp
        }
        // The clock of 2099 affects only the key that was written with it.
        try device.write([("other", .integer(1))])
        #expect(store.version(of: key("other"))?.stamp.wall == 1_799_000_000_000)
        #expect(previous?.wall == 4_070_908_800_000)
    }

    @Test func `a write follows its tombstone`() throws {
        let device = try Device()
        let store = try device.store()
        device.clock.time = 4_070_908_800_000_000
        try device.write([("k", .integer(1))])
        try device.write(removing: ["k"])
        let tombstone = try #require(store.version(of: key("k"))?.stamp)
        device.clock.time = 1_000_000
        try device.reopen()
        try device.write([("k", .integer(1))])
        #expect(try #require(device.store().version(of: key("k"))?.stamp) > tombstone)
    }

    @Test func `writes are provisional until the account has arrived, and ordinary after`() throws {
        let device = try Device()
        let store = try device.store()
        try device.write([("before", .integer(1))])
        _ = try device.database.enter(account: "A", bringingValues: false)
        try device.write([("meanwhile", .integer(1))])
        #expect(store.version(of: key("before"))?.stamp.isProvisional == true)
        #expect(store.version(of: key("meanwhile"))?.stamp.isProvisional == true)
        #expect(store.isProvisionalHere(key("before")) && store.isProvisionalHere(key("meanwhile")))
        try device.join(Stranger().plan(in: store), cause: .downloaded)
        try device.database.progress.completeDownload(cursor: [1])
        try device.write([("after", .integer(1)), ("before", .integer(2))])
        #expect(store.version(of: key("after"))?.stamp.isProvisional == false)
        #expect(store.version(of: key("before"))?.stamp.isProvisional == false)
        #expect(store.version(of: key("meanwhile"))?.stamp.isProvisional == true)
    }

    @Test func `sixteen lower-case digits name an origin, and nothing else does`() {
        for bits in [0, 1, 0xABC, .max] as [UInt64] {
            #expect(Origin(Origin(bits: bits).description)?.bits == bits)
            #expect(Origin(bits: bits).description.utf8.count == 16)
        }
        for text in ["", "0", "00000000000000AB", "+00000000000000a", "00000000000000001", "000000000000000g"] {
            #expect(Origin(text) == nil)
        }
    }
}
