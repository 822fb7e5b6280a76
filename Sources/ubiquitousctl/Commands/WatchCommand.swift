// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import PropertyList
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// `watch`.
struct WatchCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Prints changes as they happen, until it is interrupted.",
        discussion: """
            Prints a line for each key: "KEY = VALUE", or "KEY removed". With --json it prints an object that also has \
            the reason (server-change, initial-sync-change, quota-violation, account-change or local-change) and the \
            device that wrote it. It continues when the service restarts, and misses nothing.
            """)

    @OptionGroup var options: StoreOptions

    @Flag(help: "Print an object of JSON for each change.")
    var json = false

    @Flag(help: "Print the present values first.")
    var initial = false

    @Argument(
        help: "The keys (default: all).", completion: .custom { arguments, _, _ in KeyCompletion.keys(arguments) })
    var keys: [String] = []

    func perform() async throws {
        try await options.withOpenStore { store in
            let watch = Watch(store, keys: Set(keys.map { Text($0) }), json: json)
            try await watch.begin(printing: initial)
            await store.connection.untilTheBusEnds()
            throw Failure(.unreachable, "The bus has ended.")
        }
    }
}

/// Follows a store.
@BusActor
private final class Watch {
    private let store: StoreObject
    private let keys: Set<Text>
    private let isJSON: Bool
    private var slot: Slot?
    private lazy var follower = SnapshotFollower<ExternalChange>(store.connection) { [store] in
        _ = try await store.subscribe()
    } read: { [store] in
        try await store.snapshot(since: $0)
    } show: { [weak self] changes, causes in
        self?.show(changes, causes)
    }

    init(_ store: StoreObject, keys: Set<Text>, json: Bool) {
        (self.store, self.keys, isJSON) = (store, keys, json)
    }

    func begin(printing: Bool) async throws {
        slot = try await store.onChange { [weak self] in self?.received($0) }
        try await follower.begin { values in
            guard printing else { return }
            for (key, value) in values.sorted(by: { $0.key < $1.key }) where isWanted(key) { tell(key, value, nil) }
            Output.endIfBroken()
        }
    }

    private func isWanted(_ key: Text) -> Bool { keys.isEmpty || keys.contains(key) }

    private func received(_ change: ExternalChange) {
        if change.reason == ChangeReason.quotaViolation { refused(change) }
        follower.note(change)
    }

    private func show(_ changes: [SnapshotFollower<ExternalChange>.Change], _ causes: [ExternalChange]) {
        for (key, value) in changes where isWanted(key) {
            tell(key, value, causes.last { $0.keys.contains(key) })
        }
    }

    // MARK: Output

    private func tell(_ key: Text, _ value: Value?, _ cause: ExternalChange?) {
        if isJSON {
            var line: [Text: Value] = ["key": .string(key)]
            line["value"] = value
            line["removed"] = value == nil ? .boolean(true) : nil
            line["reason"] = cause.map { .string(Text(ChangeReason.word(for: $0.reason))) }
            line["device"] = cause?.originDevice.map { .string(Text($0)) }
            return Output.print(json: .dictionary(line))
        }
        let style = Style(for: STDOUT_FILENO)
        let name = style.bold(ValueText.word(key: key))
        Output.print(value.map { "\(name) = \(ValueText.word($0))" } ?? "\(name) removed")
    }

    private func refused(_ change: ExternalChange) {
        let names = change.keys.filter(isWanted).map { "\"\($0)\"" }
        if names.isEmpty { return }
        let limit = change.limit ?? localized("of the store")
        Output.remark("The limit \(limit) is exceeded by \(names.joined(separator: ", "))")
    }
}

extension ServiceConnection {
    /// Returns when the bus has disconnected. The program ends before if nobody reads its output any more.
    func untilTheBusEnds() async {
        let reader = Output.endWithReader()
        await withCheckedContinuation { continuation in
            var waiting: CheckedContinuation<Void, Never>? = continuation
            onDisconnect {
                waiting?.resume()
                waiting = nil
            }
        }
        withExtendedLifetime(reader) {}
    }
}
