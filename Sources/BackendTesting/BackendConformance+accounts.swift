// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication

extension BackendConformance {
    static let accounts: [BackendConformance] = [
        BackendConformance("an empty remote has no account until one is created") { remote in
            let backend = try remote.makeBackend()
            try await expect(.noAccount) { _ = try await backend.open(creatingAccount: false) }
            let made = try await backend.open(creatingAccount: true)
            try expect(made.isNew, "an account that was made is new")
            let found = try await remote.makeBackend().open(creatingAccount: true)
            try expect(found.isNamed(made.identifier), "it is found, and no second one made")
            try expect(found.isNew, "and is new until somebody publishes")
            let device = BackendDevice("A", seed: 1, backend: try remote.makeBackend())
            try await device.signIn(creating: false)
            device.set(store, "a", .integer(1))
            try await device.sync()
            let used = try await remote.makeBackend().open(creatingAccount: true)
            try expect(!used.isNew && used.isNamed(made.identifier), "and no more after that")
        },
        BackendConformance("devices that create the account at the same time end up with one") { remote in
            let devices = try (0..<3).map {
                BackendDevice("\($0)", seed: UInt64($0 + 1), backend: try remote.makeBackend())
            }
            let backends = devices.map(\.backend)
            let accounts = try await withThrowingTaskGroup(of: (Int, RemoteAccount).self) { group in
                for (number, backend) in backends.enumerated() {
                    group.addTask { (number, try await again { try await backend.open(creatingAccount: true) }) }
                }
                var accounts: [Int: RemoteAccount] = [:]
                for try await (number, account) in group { accounts[number] = account }
                return accounts
            }
            try expect(accounts.count == 3, "each finds one")
            for device in devices {
                try await again { try await device.signIn(creating: true) }
                device.set(store, device.name, .integer(1))
                try await again { try await device.sync() }
            }
            try await settle(devices)
            try expect(Set(devices.map(\.account)).count == 1, "all have one")
            try expect(devices[0].values(store).count == 3, "and what each wrote is in it")
        },
        BackendConformance("an emptied remote is reported, and deletes nothing") { remote in
            guard let empty = remote.empty else { return }
            let device = try await devices(1, remote)[0]
            device.set(store, "a", .integer(1))
            try await device.sync()
            try await empty()
            try await expect(.reset) { try await device.pull() }
            try await expect(.reset) { try await device.push() }
            try expect(device.values(store) == ["a": .integer(1)], "nothing is lost on the device")
        },
        BackendConformance("a publication for another account is refused") { remote in
            let device = try await devices(1, remote)[0]
            let backend = try remote.makeBackend()
            _ = try await backend.open(creatingAccount: false)
            let publication = Publication(
                account: String(repeating: "0", count: 31) + "1", origin: device.origin, formerOrigins: [], counts: [:],
                device: RemoteDevice(identifier: "x", name: "x"), stores: [], time: 1)
            try await expect(.reset) { _ = try await backend.push(publication) }
        },
        BackendConformance("a backend that was closed does nothing") { remote in
            let device = try await devices(1, remote)[0]
            await device.backend.close()
            try await expect(.unavailable) { try await device.pull() }
            try await expect(.unavailable) { try await device.push() }
        },
    ]
}
