// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication

extension BackendConformance {
    static let failures: [BackendConformance] = [
        BackendConformance("a device that changes its origin loses nothing, and leaves nothing behind") { remote in
            let (a, b) = try await pair(remote)
            for round in 0..<5 {
                a.set(store, "\(round)", .integer(1))
                try await a.sync()
                a.restart(with: try remote.makeBackend())
                try await a.signIn(creating: false)
            }
            a.set(store, "last", .integer(1))
            try await settle([a, b])
            let pull = try await b.backend.pull(after: nil, as: b.origin)
            try expect(pull.devices.keys.count { $0 != b.origin } <= 1, "former publications are gone")
        },
        BackendConformance("a clone is detected, and its writes are kept") { remote in
            let (a, b) = try await pair(remote)
            a.set(store, "a", .integer(1))
            try await settle([a, b])
            // Another process publishes under the same origin, as a device does that was copied while it ran.
            let clone = try remote.makeBackend()
            _ = try await clone.open(creatingAccount: false)
            let first = try await clone.pull(after: nil, as: a.origin)
            for store in first.stores { _ = try await first.change(of: store) }
            _ = await first.finish(joined: Set(first.stores))
            var state = a.stores[store] ?? StoreState()
            let other = Origin(bits: 77)
            let stamp = Stamp(after: nil, wall: a.time / 1000, origin: other, isProvisional: false)
            state.entries[Key(unchecked: "clone")] = Entry(stamp: stamp, n: 1, value: Value.integer(2).encoded())
            state.vector.insert(Dot(origin: other, n: 1))
            let push = try await clone.push(
                Publication(
                    account: a.account, origin: a.origin, formerOrigins: [], counts: [:],
                    device: RemoteDevice(identifier: a.name, name: a.name),
                    stores: [AccountStore(identifier: store, sequence: 9, published: 0)], time: a.time))
            for identifier in push.stores {
                try await push.upload(StoreSnapshot(identifier: identifier, state: state, sequence: 9))
            }
            try await push.finish()
            let origin = a.origin
            a.set(store, "b", .integer(1))
            for _ in 0..<3 {
                do { try await a.sync() } catch let error as RemoteError where error.code == .unavailable { continue }
            }
            try expect(a.origin != origin, "the device goes on under another origin")
            try await settle([a, b])
            try expect(b.values(store).keys.sorted() == ["a", "b", "clone"], "nothing is lost")
        },
        BackendConformance("garbage collection loses nothing, on any device, at any time") { remote in
            let devices = try await devices(3, remote)
            for round in 0..<40 {
                let device = devices[round % 3]
                device.set(store, "\(round % 7)", .data([UInt8](repeating: UInt8(round), count: 2000)))
                if round % 5 == 0 { device.set(store, "\(round % 3)", nil) }
                try await device.sync()
                for device in devices { device.time += 3 * 86_400_000_000 }
                try await devices[(round + 1) % 3].collectGarbage()
                try await devices[(round + 1) % 3].collectGarbage()
            }
            try await settle(devices)
            let late = BackendDevice("late", seed: 99, backend: try remote.makeBackend())
            try await late.signIn(creating: false)
            try expect(try await late.sync(), "a new device reads all of it")
            try expect(late.values(store) == devices[0].values(store), "and sees what the others see")
        },
        BackendConformance("a forgotten device that comes back loses nothing") { remote in
            let (a, b) = try await pair(remote)
            b.set(store, "b", .integer(1))
            try await settle([a, b])
            a.set(store, "a", .integer(1))
            try await a.sync()
            try await a.collectGarbage(forgetting: [b.origin])
            b.set(store, "c", .integer(1))
            try await settle([a, b])
            try expect(a.values(store).count == 3, "nothing is lost")
        },
    ]
}
