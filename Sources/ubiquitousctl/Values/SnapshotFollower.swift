// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import SDBus
internal import UbiquitousStore

/// Follows values that change. Its changes are the differences between two snapshots, so that missed signals don't
/// matter.
@BusActor
final class SnapshotFollower<Cause> {
    /// A key, and its new value; `nil` if it was removed.
    typealias Change = (key: Text, value: Value?)

    private let connection: ServiceConnection
    private let subscribe: @BusActor () async throws -> Void
    private let read: @BusActor (UInt64) async throws -> Snapshot
    private let show: @BusActor ([Change], [Cause]) -> Void
    private var values: [Text: Value] = [:]
    private var generation: UInt64 = 0
    private var causes: [Cause] = []
    private var isStale = false
    private var isReading = true
    /// Counts the services that have come and gone. Each has to be subscribed to.
    private var services = 0
    private var subscribedService = -1

    /// - Parameters:
    ///   - subscribe: has the service send signals.
    ///   - read: reads a snapshot since a generation.
    ///   - show: shows changes, sorted by key, and the signals that came before they were read.
    init(
        _ connection: ServiceConnection, subscribe: @escaping @BusActor () async throws -> Void,
        read: @escaping @BusActor (UInt64) async throws -> Snapshot,
        show: @escaping @BusActor ([Change], [Cause]) -> Void
    ) {
        (self.connection, self.subscribe, self.read, self.show) = (connection, subscribe, read, show)
    }

    /// Subscribes, and reads the present values.
    /// - Parameter first: is called with these, before anything is shown.
    func begin(_ first: ([Text: Value]) -> Void = { _ in }) async throws {
        connection.onOwnerChange = { [weak self] _ in self?.serviceChanged() }
        let service = services
        try await subscribe()
        subscribedService = service
        let snapshot = try await read(0)
        (values, generation) = (snapshot.values, snapshot.generation)
        first(values)
        isReading = false
        catchUpSoon()
    }

    /// Notes a signal.
    func note(_ cause: Cause) {
        causes.append(cause)
        isStale = true
        catchUpSoon()
    }

    private func serviceChanged() {
        services += 1
        isStale = true
        guard connection.owner != nil else { return Output.remark("The service has ended; waiting for it") }
        catchUpSoon()
    }

    private func catchUpSoon() { EventLoop.task { await self.catchUp() } }

    /// Shows what has changed since the last snapshot. The next round handles changes that arrive meanwhile.
    private func catchUp() async {
        if isReading { return }
        isReading = true
        defer { isReading = false }
        while isStale || subscribedService != services, connection.owner != nil {
            do { try await readOn() } catch {
                isStale = true
                try? await Task.sleep(for: .seconds(1))
            }
        }
    }

    private func readOn() async throws {
        let service = services
        if subscribedService != service {
            try await subscribe()
            subscribedService = service
        }
        let before = causes.count
        isStale = false
        let snapshot = try await read(generation)
        generation = snapshot.generation
        let known = Array(causes.prefix(before))
        causes.removeFirst(before)
        let gone = snapshot.isComplete ? values.keys.filter { snapshot.values[$0] == nil } : snapshot.removed
        let all: [Change] = gone.map { ($0, nil) } + snapshot.values.map { ($0.key, $0.value) }
        let changed = all.filter { values[$0.key] != $0.value }.sorted { $0.key < $1.key }
        for (key, value) in changed { values[key] = value }
        if !changed.isEmpty { show(changed, known) }
        Output.endIfBroken()
    }
}
