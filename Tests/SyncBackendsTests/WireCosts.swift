// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import PropertyList
import Replication
import ServerTesting
import StoreEngine
import SyncEngine
import Synchronization
import Testing

extension [FaultProxy.Exchange] {
    var bytesOut: Int { reduce(0) { $0 + $1.request.bytes.count } }
    var bytesIn: Int { reduce(0) { $0 + $1.answerBytes } }

    var summary: String {
        let lines = map { "\($0.request.method) \($0.request.path)" }
        return "\(count) requests, \(bytesOut) bytes out, \(bytesIn) in: \(lines)"
    }
}

extension BackendDevice {
    /// Twenty stores with ten settings each.
    func fillSmallStores() {
        for store in 0..<20 {
            for key in 0..<10 { set("org.example.app-\(store)", "setting.\(key)", .string(Text("value \(key)"))) }
        }
    }
}

/// Checks what the blob layer costs, in requests and bytes on the wire.
///
/// - Parameters:
///   - proxy: the proxy that counts what goes to the remote.
///   - most: the most bytes that a small change may take each way.
///   - methods: the methods of the writer's and of a reader's requests for a small change.
///   - backend: makes a backend that goes through the proxy.
func expectBlobCosts(
    through proxy: FaultProxy, most: Int, methods: (writer: [String], reader: [String]),
    _ backend: @escaping @Sendable (Environment) throws -> any RemoteBackend
) async throws {
    let dice = Dice(seed: 1)
    let time = Time()
    let environment = Environment(time: { time.now.load(ordering: .relaxed) }, random: { dice.roll() })
    let remote = EmptyRemote { try backend(environment) }
    let devices = try await BackendConformance.devices(2, remote)
    devices[0].fillSmallStores()
    devices[1].set("org.example.app-1", "own", .boolean(true))
    try await BackendConformance.settle(devices)
    // No device has written for a while.
    time.now.add(601_000_000, ordering: .relaxed)
    try await BackendConformance.settle(devices)

    proxy.exchanges = []
    for _ in 0..<5 { try await devices[1].pull() }
    print("five looks: \(proxy.exchanges.summary)")
    #expect(proxy.exchanges.count == 5)

    devices[0].set("org.example.app-3", "setting.3", .string("another value"))
    for (name, methods) in [("writer", methods.writer), ("reader", methods.reader)] {
        proxy.exchanges = []
        if name == "writer" { try await devices[0].sync() } else { try await devices[1].pull() }
        print("a small change, the \(name): \(proxy.exchanges.summary)")
        #expect(proxy.exchanges.map(\.request.method) == methods)
        #expect(proxy.exchanges.bytesOut <= most && proxy.exchanges.bytesIn <= most)
    }

    let late = BackendDevice("late", seed: 99, backend: try remote.makeBackend())
    proxy.exchanges = []
    try await late.signIn(creating: false)
    try await late.sync()
    print("a first download of 20 small stores: \(proxy.exchanges.summary)")
    #expect(proxy.exchanges.count <= 25)
}

private final class Time: Sendable {
    let now = Atomic<UInt64>(1_700_000_000_000_000)
}
