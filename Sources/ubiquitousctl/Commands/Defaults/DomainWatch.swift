// SPDX-License-Identifier: Apache-2.0

internal import DefaultsDomains
internal import Glibc
internal import PropertyList
internal import SDBus
internal import UbiquitousStore

/// `defaults watch`: follows a layer of a domain. Its changes are the differences between two snapshots, so that missed
/// signals don't matter.
@BusActor
final class DomainWatch {
    private let connection: ServiceConnection
    private let place: LayerAddress
    /// The key to follow; `nil` for every key.
    private let key: Text?
    private let form: DefaultsCall.Form
    private var values: [Text: Value] = [:]
    private var generation: UInt64 = 0
    private var slot: Slot?
    private var isReading = false
    private var isStale = false

    init(_ connection: ServiceConnection, _ place: LayerAddress, key: Text?, form: DefaultsCall.Form) {
        (self.connection, self.place, self.key, self.form) = (connection, place, key, form)
    }

    /// Prints changes until the bus disconnects.
    func run() async throws {
        slot = try await connection.onChange(of: place) { [weak self] in self?.changed() }
        connection.onOwnerChange = { [weak self] _ in self?.serviceChanged() }
        try await connection.subscribe(to: place)
        let snapshot = try await connection.snapshot(place)
        (values, generation) = (snapshot.values, snapshot.generation)
        await connection.untilTheBusEnds()
        throw Failure(.unreachable, "The bus has ended")
    }

    private func changed() {
        isStale = true
        EventLoop.task { await self.catchUp() }
    }

    /// Subscribes again, because a service that has just started knows of no subscription.
    private func serviceChanged() {
        guard connection.owner != nil else { return Output.remark("The service has ended; waiting for it") }
        EventLoop.task {
            try? await self.connection.subscribe(to: self.place)
            self.changed()
        }
    }

    /// Prints what has changed since the last snapshot. The next round handles changes that arrive meanwhile.
    private func catchUp() async {
        guard !isReading else { return }
        isReading = true
        defer { isReading = false }
        while isStale {
            isStale = false
            guard let snapshot = try? await connection.snapshot(place, since: generation) else { return }
            generation = snapshot.generation
            show(snapshot)
        }
    }

    private func show(_ snapshot: Snapshot) {
        let gone = snapshot.isComplete ? values.keys.filter { snapshot.values[$0] == nil } : snapshot.removed
        let changed = gone.map { ($0, Value?.none) } + snapshot.values.map { ($0.key, $0.value) }
        for (name, value) in changed.sorted(by: { $0.0 < $1.0 }) where values[name] != value {
            values[name] = value
            if key == nil || key == name { tell(name, value) }
        }
        Output.endIfBroken()
    }

    private func tell(_ name: Text, _ value: Value?) {
        if form == .json {
            var line: [Text: Value] = ["key": .string(name)]
            line["value"] = value
            line["removed"] = value == nil ? .boolean(true) : nil
            return Output.print(json: .dictionary(line))
        }
        let word = Style(for: STDOUT_FILENO).bold(ValueText.word(key: name))
        let text = value.map { form == .oldStyle ? OldStyleText.text($0) : ValueText.word($0) }
        Output.print(text.map { "\(word) = \($0)" } ?? "\(word) removed")
    }
}
