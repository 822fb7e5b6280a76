// SPDX-License-Identifier: Apache-2.0

internal import DefaultsDomains
internal import Glibc
internal import PropertyList
internal import SDBus
internal import UbiquitousStore

/// `defaults watch`: follows a layer of a domain.
@BusActor
final class DomainWatch {
    private let connection: ServiceConnection
    private let place: LayerAddress
    /// The key to follow; `nil` for every key.
    private let key: Text?
    private let form: DefaultsCall.Form
    private var slot: Slot?

    init(_ connection: ServiceConnection, _ place: LayerAddress, key: Text?, form: DefaultsCall.Form) {
        (self.connection, self.place, self.key, self.form) = (connection, place, key, form)
    }

    /// Prints changes until the bus disconnects.
    func run() async throws {
        let (connection, place) = (connection, place)
        let follower = SnapshotFollower<Void>(connection) {
            try await connection.subscribe(to: place)
        } read: {
            try await connection.snapshot(place, since: $0)
        } show: { changes, _ in
            for (name, value) in changes where self.key == nil || self.key == name { self.tell(name, value) }
        }
        slot = try await connection.onChange(of: place) { follower.note(()) }
        try await follower.begin()
        await connection.untilTheBusEnds()
        throw Failure(.unreachable, "The bus has ended")
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
