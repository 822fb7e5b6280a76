// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import PropertyList
internal import SDBus
internal import UbiquitousStore

/// Where the service is.
struct BusOptions: ParsableArguments {
    @Option(
        help: "The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).",
        completion: .list(["system", "session"]))
    var bus: String?

    /// The bus that is meant.
    var address: BusAddress {
        switch bus ?? Variable.bus.value ?? "system" {
        case "system": .system
        case "session": .session
        case let address: .address(address)
        }
    }

    /// Connects to the service's bus.
    @BusActor
    func connect() async throws -> ServiceConnection {
        try await ServiceConnection.open(address, description: "ubiquitousctl")
    }
}

/// Where the service is, and whose stores and account are meant.
struct ServiceOptions: ParsableArguments {
    @OptionGroup var bus: BusOptions

    @Option(
        help: ArgumentHelp("Another user, by name or number; for root.", valueName: "name-or-uid"),
        completion: .shellCommand("getent passwd | cut -d: -f1"))
    var user: String?

    /// The user that is meant.
    /// - Throws: ``Failure`` if there is none of that name, or if it is another one and this isn't root.
    func uid() throws -> UInt32 {
        guard let user else { return geteuid() }
        guard let uid = UInt32(user) ?? getpwnam(user).map({ $0.pointee.pw_uid }) else {
            throw Failure(.usage, "There is no user \"\(user)\"", advice: "--user takes a name or a number.")
        }
        guard uid == geteuid() || geteuid() == 0 else {
            throw Failure(.refused, "Only root may act for user \"\(user)\"", advice: "Use sudo.")
        }
        return uid
    }

    /// Connects to the service's bus.
    @BusActor
    func connect() async throws -> ServiceConnection { try await bus.connect() }

    /// Connects to the service's bus as the user that is meant, for calls that are only for one's own.
    @BusActor
    func connectAsUser() async throws -> ServiceConnection {
        let uid = try uid()
        guard uid == geteuid() || seteuid(uid) == 0 else {
            throw Failure(.refused, "Acting for user \(uid): \(String(cString: strerror(errno)))")
        }
        return try await connect()
    }

    /// The account of the user that is meant.
    @BusActor
    func account() async throws -> AccountObject {
        let uid = try uid()
        return try await connect().account(ofUser: uid)
    }
}

/// Options of every command on one store.
struct StoreOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "The store (default: $UBIQUITOUS_STORE_IDENTIFIER, or the app's own).", valueName: "identifier"),
        completion: .custom { arguments, _, _ in Completions.stores(arguments) })
    var store: String?

    @OptionGroup var service: ServiceOptions

    /// Does something with the store that is meant, which shouldn't take long.
    @BusActor
    func withStore<Result>(_ body: @BusActor (StoreObject) async throws -> Result) async throws -> Result {
        try await Progress.showing("Waiting for the service") { try await withOpenStore(body) }
    }

    /// Does something with the store that is meant.
    @BusActor
    func withOpenStore<Result>(_ body: @BusActor (StoreObject) async throws -> Result) async throws -> Result {
        let uid = try service.uid()
        let connection = try await service.connect()
        let identifier = try await identifier(connection)
        let store = try connection.store(identifier, ofUser: uid)
        do {
            return try await body(store)
        } catch let error as UbiquitousStoreError where error.code == .unknownObject {
            throw Failure(
                .refused, "There is no store \"\(identifier)\" for user \(uid)",
                advice: "\"ubiquitousctl identify\" lists what installed manifests declare.")
        }
    }

    @BusActor
    private func identifier(_ connection: ServiceConnection) async throws -> String {
        if let store = store ?? Variable.identifier.value { return store }
        do {
            return try await connection.manager.openStore("").identifier
        } catch let error as UbiquitousStoreError
            where [.ambiguousIdentity, .identityUnknown, .notEntitled].contains(error.code)
        {
            throw Failure(
                .usage, "No store is named",
                advice: """
                    Name one with --store or in UBIQUITOUS_STORE_IDENTIFIER; \
                    "ubiquitousctl stores" lists those that hold something.
                    """)
        }
    }
}

/// What a command that changes something may be asked.
struct ChangeOptions: ParsableArguments {
    @Flag(
        name: [.customLong("check"), .customLong("dry-run"), .customShort("n")],
        help: "Change nothing, and say what would change.")
    var check = false

    @Flag(help: "Say what changed as JSON.")
    var json = false

    /// Makes a change, unless it is so already.
    ///
    /// - Parameters:
    ///   - what: what is being done, in words, for a person who waits.
    ///   - plan: what is to be done, in words; `nil` if nothing is.
    @BusActor
    func make(
        _ what: String, plan: @BusActor () async throws -> String?, _ body: @BusActor () async throws -> Void
    ) async throws {
        let planned = try await Progress.showing("Waiting for the service") { try await plan() }
        if planned != nil && !check { try await Progress.showing(what) { try await body() } }
        if json { return Output.print(json: ["changed": .boolean(planned != nil)]) }
        if check { Output.print(planned.map { "would \($0)" } ?? "nothing would change") }
    }
}

/// Variables of the environment that stand in for options.
enum Variable: String {
    case bus = "UBIQUITOUS_STORE_BUS"
    case identifier = "UBIQUITOUS_STORE_IDENTIFIER"
    case noColor = "NO_COLOR"
    case terminal = "TERM"

    /// What it holds; `nil` if nothing.
    var value: String? {
        getenv(rawValue).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
}
