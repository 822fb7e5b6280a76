// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PropertyList
internal import SDBus
internal import UbiquitousStore

/// `usage`.
struct UsageCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "usage",
        abstract: "Shows how full stores are, and their largest keys.",
        discussion: """
            Shows all stores that hold something, unless one is named, and the database's size on disk with the part \
            that is history, which "ubiquitousctl history trim" frees. Keys that stay on this device have limits of \
            their own.
            """)

    @OptionGroup var options: StoreOptions

    @Option(help: "How many of the largest keys to show for each store.")
    var keys = 3

    @Flag(help: "Print JSON, with the sums of all stores.")
    var json = false

    func validate() throws {
        if keys < 0 { throw ValidationError(localized("--keys takes a number, 0 or more.")) }
    }

    func perform() async throws {
        let (usages, undeclared) = try await Progress.showing("Reading the stores") { try await measured() }
        let database = try await databaseUsage()
        if json { return Output.print(json: json(usages, undeclared, database)) }
        if usages.isEmpty, undeclared.isEmpty { Output.remark("No store holds anything") }
        for usage in usages { usage.show() }
        for store in undeclared {
            Output.remark(
                """
                \(store) holds values of an app that this program may not open: a sandboxed one, or one without a \
                manifest that is in force
                """)
        }
        if let database { show(database, stores: usages.reduce(0) { $0 + $1.bytes }) }
    }

    private func json(_ usages: [Usage], _ undeclared: [String], _ database: DatabaseUsage?) -> Value {
        var object: [Text: Value] = [
            "stores": .array(usages.map(\.json)),
            "bytes": .integer(Int64(usages.reduce(0) { $0 + $1.bytes })),
            "keys": .integer(Int64(usages.reduce(0) { $0 + $1.keys })),
            "undeclared": .array(undeclared.map { .string(Text($0)) }),
        ]
        object["database"] = database.map {
            [
                "bytes": .integer(Int64($0.bytes)), "bytes-limit": .integer(Int64($0.limit)),
                "history-bytes": .integer(Int64($0.historyBytes)),
            ]
        }
        return .dictionary(object)
    }

    /// - Parameter stores: the bytes of all stores' values.
    private func show(_ database: DatabaseUsage, stores: Int) {
        let style = Style(for: 1)
        let share = Double(database.bytes) / Double(max(1, database.limit))
        Output.print(style.bold("Database"))
        Output.print(
            "  \(style.byFullness(share, SizeText.bar(share))) \(Int((share * 100).rounded())) %  "
                + "\(SizeText.text(database.bytes)) of \(SizeText.text(database.limit)), of which about "
                + "\(SizeText.text(database.historyBytes)) history")
        let rest = database.bytes - min(database.bytes, stores + database.historyBytes)
        guard rest > database.limit / 8 else { return }
        Output.print(
            Variable.identifier.value == nil
                ? """
                  The rest, about \(SizeText.text(rest)), is defaults domains, which "ubiquitousctl defaults domains" \
                lists, and what the database needs besides.
                """
                : """
                  The rest, about \(SizeText.text(rest)), is other stores, which "ubiquitousctl stores" lists, defaults \
                domains, and what the database needs besides.
                """)
    }

    /// Returns what all stores take together; `nil` if one store is asked for, or the caller may not know.
    @BusActor
    private func databaseUsage() async throws -> DatabaseUsage? {
        if options.store != nil { return nil }
        return try? await options.service.account().usage()
    }

    /// Measures stores. Those that this program may not open can only be named.
    @BusActor
    private func measured() async throws -> (usages: [Usage], undeclared: [String]) {
        let isSignedIn = try await options.service.account().properties().isSignedIn
        if options.store != nil || Variable.identifier.value != nil {
            return (
                [try await options.withOpenStore { try await Usage($0, largest: keys, isSignedIn: isSignedIn) }], []
            )
        }
        let uid = try options.service.uid()
        let connection = try await options.service.connect()
        var (usages, undeclared): ([Usage], [String]) = ([], [])
        for store in try await connection.manager.stores(ofEverybody: options.service.user != nil)
        where store.uid == uid {
            do {
                usages.append(
                    try await Usage(
                        connection.store(store.identifier, ofUser: uid), largest: keys, isSignedIn: isSignedIn))
            } catch let error as UbiquitousStoreError where error.code == .unknownObject {
                undeclared.append(store.identifier)
            }
        }
        return (usages, undeclared)
    }
}

/// How full one store is.
private struct Usage: Sendable {
    private let store: StoreDescription
    private let largest: [(key: Text, size: Int)]
    /// What the keys take that stay on this device, which have limits of their own.
    private let local: (keys: Int, bytes: Int)

    @BusActor
    init(_ object: StoreObject, largest count: Int, isSignedIn: Bool) async throws {
        store = try await object.properties()
        let values = try await object.snapshot().values
        // Until an account's values have arrived, the store shows those of the account before, which don't count here.
        let isArriving = isSignedIn && !store.isInitialSyncDone
        let bytes = values.values.reduce(0) { $0 + $1.size }
        local = isArriving ? (0, 0) : (max(0, values.count - store.keyCount), max(0, bytes - store.bytesUsed))
        largest = Array(
            values.map { (key: $0.key, size: $0.value.size) }
                .sorted { ($1.size, $0.key) < ($0.size, $1.key) }.prefix(count))
    }

    var bytes: Int { store.bytesUsed }
    var keys: Int { store.keyCount }

    /// How full the store is, from 0 to 1: its share of bytes or of keys, whichever is greater.
    private var share: Double {
        max(
            Double(store.bytesUsed) / Double(max(1, store.limits.totalBytes)),
            Double(store.keyCount) / Double(max(1, store.limits.keys)))
    }

    func show() {
        let style = Style(for: 1)
        Output.print(style.bold(store.identifier))
        let percent = Int((share * 100).rounded())
        Output.print(
            "  \(style.byFullness(share, SizeText.bar(share))) \(percent) %  \(SizeText.text(store.bytesUsed)) of "
                + "\(SizeText.text(store.limits.totalBytes)), \(store.keyCount) of \(store.limits.keys) keys")
        if local.keys > 0 {
            Output.print(
                "  on this device only: \(SizeText.text(local.bytes)) of \(SizeText.text(store.limits.totalBytes)), "
                    + "\(local.keys) of \(store.limits.keys) keys")
        }
        for (key, size) in largest {
            Output.print("  \(String(repeating: " ", count: 20)) \(SizeText.text(size))  \(ValueText.word(key: key))")
        }
    }

    var json: Value {
        [
            "identifier": .string(Text(store.identifier)),
            "bytes": .integer(Int64(store.bytesUsed)), "bytes-limit": .integer(Int64(store.limits.totalBytes)),
            "keys": .integer(Int64(store.keyCount)), "keys-limit": .integer(Int64(store.limits.keys)),
            "local-bytes": .integer(Int64(local.bytes)), "local-keys": .integer(Int64(local.keys)),
            "largest": .array(largest.map { ["key": .string($0.key), "bytes": .integer(Int64($0.size))] }),
        ]
    }
}
