// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
public import SDBus
internal import SeededRandom
public import UbiquitousStoreTesting

/// A client that calls as fast as it gets replies: of a hundred calls 80 read a value, 15 set one, 3 set ten at once,
/// and 2 ask what has changed.
@BusActor
public final class Caller {
    private let store: StoreClient
    private var random: SplitMix
    private var generation: UInt64 = 0
    /// The latencies of reads.
    public private(set) var reads = Latencies()
    /// The latencies of all other calls to the service.
    public private(set) var writes = Latencies()
    /// The latencies of calls to the bus itself, which no service can shorten.
    public private(set) var busCalls = Latencies()

    private static let keys = 100

    /// - Throws: `BusError`.
    public init(_ client: BusClient, store identifier: String, seed: UInt64) throws {
        store = try client.store(identifier)
        random = SplitMix(seed: seed)
    }

    /// Subscribes, and ignores the signals.
    public func subscribe() async throws {
        try await store.call("Subscribe") { try $0.append(1 as UInt64) }
    }

    /// Sets the values that the calls read.
    ///
    /// - Throws: the first `BusError`.
    public func prepare() async throws {
        for key in 0..<Self.keys { try await store.set("\(key)", value()) }
    }

    /// Calls for a time.
    ///
    /// - Throws: the first `BusError`.
    public func call(for duration: Duration) async throws {
        let end = ContinuousClock.now + duration
        while ContinuousClock.now < end {
            let kind = Int.random(in: 0..<100, using: &random)
            let started = ContinuousClock.now
            try await callOnce(kind)
            let elapsed = ContinuousClock.now - started
            if kind < 80 { reads.add(elapsed) } else { writes.add(elapsed) }
            if kind % 16 == 0 { try await callBus() }
        }
    }

    private func callBus() async throws {
        let started = ContinuousClock.now
        try await store.client.connection.invoke(
            "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetId")
        busCalls.add(ContinuousClock.now - started)
    }

    private func callOnce(_ kind: Int) async throws {
        switch kind {
        case ..<80: _ = try await store.value(key())
        case ..<95: try await store.set(key(), value())
        case ..<98: try await store.apply((0..<10).map { ("\($0 * 10)", value()) }) { _ in }
        default: generation = try await store.snapshot(since: generation).generation
        }
    }

    private func key() -> String { "\(Int.random(in: 0..<Self.keys, using: &random))" }

    private func value() -> Value {
        .data([UInt8](repeating: UInt8.random(in: .min ... .max, using: &random), count: 100))
    }
}
