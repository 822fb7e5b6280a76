// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication

extension BackendConformance {
    static let exchanges: [BackendConformance] = [
        BackendConformance("C1: every later pull returns what was pushed") { remote in
            let (a, b) = try await pair(remote)
            a.set(store, "a", .integer(1))
            a.set("org.example.Other", "b", .data([UInt8](repeating: 7, count: 200_000)))
            try await a.sync()
            try expect(try await b.pull(), "the pull is complete")
            try expect(b.stores == a.stores, "all of it is there")
            // A new device receives it too, even after the writer is gone.
            await a.backend.close()
            let late = BackendDevice("late", seed: 99, backend: try remote.makeBackend())
            try await late.signIn(creating: false)
            try expect(try await late.sync(), "the first pull is complete")
            try expect(late.stores == a.stores, "all of it is there for a new device")
        },
        BackendConformance("C1: a deletion arrives, and stays after its tombstone is forgotten") { remote in
            let (a, b) = try await pair(remote)
            a.set(store, "a", .integer(1))
            a.set(store, "b", .integer(1))
            try await settle([a, b])
            b.set(store, "a", nil)
            try await settle([a, b])
            try expect(a.values(store) == ["b": .integer(1)], "it is deleted everywhere")
            b.forgetTombstones(store)
            b.set(store, "c", .integer(1))
            try await settle([a, b])
            try expect(a.values(store) == ["b": .integer(1), "c": .integer(1)], "and never comes back")
        },
        BackendConformance("C1: a deletion spares writes that did not know of it") { remote in
            let devices = try await devices(3, remote)
            // With several stores, at least one joins the states in the order in which the write could be lost.
            for number in 0..<8 { devices[0].set("\(store)\(number)", "k", .integer(1)) }
            try await devices[0].sync()
            try await devices[1].sync()
            for number in 0..<8 {
                devices[1].set("\(store)\(number)", "k", nil)
                devices[1].forgetTombstones("\(store)\(number)")
            }
            try await devices[1].push()
            devices[2].time -= 3_600_000_000
            for number in 0..<8 { devices[2].set("\(store)\(number)", "k", .integer(2)) }
            try await devices[2].push()
            let late = BackendDevice("late", seed: 99, backend: try remote.makeBackend())
            try await late.signIn(creating: false)
            try await late.pull()
            for number in 0..<8 {
                try expect(late.values("\(store)\(number)") == ["k": .integer(2)], "the later write is there")
            }
        },
        BackendConformance("C2: values and keys that break every rule are passed on as they came") { remote in
            let (a, b) = try await pair(remote)
            for key in ["", "nul\0", String(repeating: "k", count: 4000), "é", "e\u{301}", "line\nfeed"] {
                a.set(store, key, .integer(1))
            }
            a.set(store, "large", .data([UInt8](repeating: 1, count: 2 << 20)))
            a.set(store, "nan", .real(.nan))
            try await a.sync()
            try await b.pull()
            try expect(b.stores == a.stores, "byte by byte")
        },
        BackendConformance("C3: a version vector comes with the entries that it covers, whoever publishes") { remote in
            let devices = try await devices(3, remote)
            for round in 0..<12 {
                let writer = devices[round % 3]
                writer.set(store, "\(round)", .data([UInt8](repeating: UInt8(round), count: 3000)))
                try await writer.sync()
                let reader = devices[(round + 1) % 3]
                try await reader.pull()
                for (key, entry) in writer.stores[store]?.entries ?? [:]
                where reader.stores[store]?.vector.contains(entry.dot) == true {
                    try expect(reader.stores[store]?.entries[key] != nil, "what was seen is there")
                }
            }
            try await settle(devices)
            try expect(devices[0].values(store).count == 12, "nothing is lost")
        },
        BackendConformance("C4: pulling and pushing again changes nothing") { remote in
            let (a, b) = try await pair(remote)
            a.set(store, "a", .integer(1))
            for _ in 0..<3 { try await a.push() }
            for _ in 0..<3 { try await b.pull() }
            let before = b.stores
            for _ in 0..<3 {
                try await a.push()
                try await b.sync()
                try await b.push()
                try await a.sync()
            }
            try expect(b.stores == before && a.stores == before, "both hold what they held")
        },
        BackendConformance("C5: devices that write at the same time lose nothing") { remote in
            let devices = try await devices(4, remote)
            for round in 0..<5 {
                for device in devices {
                    device.set(store, "\(device.name) \(round)", .integer(Int64(round)))
                    device.set(store, "shared", .integer(Int64(round)))
                }
                for device in devices.reversed() { try await device.push() }
            }
            try await settle(devices)
            try expect(devices[0].values(store).count == 21, "nothing is lost")
        },
        BackendConformance("what is joined is not offered again, not even to a new process with the cursor") { remote in
            let (a, b) = try await pair(remote)
            a.set(store, "a", .integer(1))
            try await a.sync()
            let pull = try await b.backend.pull(after: nil, as: b.origin)
            let offered = pull.stores
            for store in offered { _ = try await pull.change(of: store) }
            let result = await pull.finish(joined: Set(offered))
            try expect(offered.contains(store) && result.isComplete, "the first pull offers it")
            let again = try await b.backend.pull(after: result.cursor, as: b.origin)
            try expect(again.stores.isEmpty, "the second does not")
            _ = await again.finish(joined: [])
            let other = try remote.makeBackend()
            _ = try await other.open(creatingAccount: false)
            let restarted = try await other.pull(after: result.cursor, as: b.origin)
            try expect(restarted.stores.isEmpty, "nor to a process that has nothing but the cursor")
        },
        BackendConformance("what was not joined is offered until it is") { remote in
            let (a, b) = try await pair(remote)
            a.set(store, "a", .integer(1))
            a.set("org.example.Other", "b", .integer(1))
            try await a.sync()
            var cursor: [UInt8]?
            for _ in 0..<2 {
                let pull = try await b.backend.pull(after: cursor, as: b.origin)
                try expect(pull.stores.contains(store), "a store that was left out is offered")
                for store in pull.stores { _ = try await pull.change(of: store) }
                let result = await pull.finish(joined: ["org.example.Other"])
                try expect(result.isComplete, "and the pull is complete: everything was read")
                cursor = result.cursor
            }
        },
        BackendConformance("a device's name and origin are reported") { remote in
            let (a, b) = try await pair(remote)
            a.set(store, "a", .integer(1))
            try await a.sync()
            let pull = try await b.backend.pull(after: nil, as: b.origin)
            try expect(pull.devices[a.origin]?.name == a.name, "the name is that which was published")
        },
    ]
}
