// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import ArgumentParser
internal import Glibc
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// Options of every command on one store.
struct StoreOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "The store (default: $UBIQUITOUS_STORE_IDENTIFIER, or the app's own).", valueName: "identifier"),
        completion: .custom { arguments, _, _ in StoreCompletion.identifiers(arguments) })
    var store: String?

    @OptionGroup var service: ServiceOptions

    /// Returns these options, replaced by others where those are given.
    func replaced(by others: StoreOptions) -> StoreOptions {
        var options = self
        options.store = others.store ?? store
        options.service.bus.bus = others.service.bus.bus ?? service.bus.bus
        options.service.user = others.service.user ?? service.user
        return options
    }

    /// Runs `body` with the store, once it has the account's values, and shows progress if that takes longer than a
    /// second.
    @BusActor
    func withStore<Result>(_ body: @BusActor (StoreObject) async throws -> Result) async throws -> Result {
        try await Progress.showing("Waiting for the service") {
            try await withOpenStore { store in
                try await awaitValues(of: store)
                return try await body(store)
            }
        }
    }

    /// Waits for the values that the account has of a store, where the store is without them: it was forgotten before,
    /// or was not synced.
    @BusActor
    private func awaitValues(of store: StoreObject) async throws {
        let present = try await store.properties()
        guard present.isSynchronized, !present.isInitialSyncDone else { return }
        let account = store.connection.account(ofUser: present.uid)
        switch try await account.properties().state {
        case .signedOut: return
        case .initialSync, .syncing, .idle: await account.awaitValues(timeout: Patience.values)
        default: await account.remarkOnValues()
        }
    }

    /// Runs `body` with the store that is meant.
    @BusActor
    func withOpenStore<Result>(_ body: @BusActor (StoreObject) async throws -> Result) async throws -> Result {
        let uid = try service.uid()
        let connection = try await service.connect()
        let identifier = try await identifier(connection)
        let store = try connection.store(identifier, ofUser: uid)
        do {
            return try await body(store)
        } catch let error as UbiquitousStoreError where error.code == .unknownObject {
            throw await Self.noStore(identifier, ofUser: uid, connection.manager)
        }
    }

    /// Returns the error if a store doesn't exist.
    @BusActor
    static func noStore(_ identifier: String, ofUser uid: UInt32, _ manager: ManagerObject) async -> Failure {
        var advice: Sentence = "\"ubiquitousctl identify\" lists what installed manifests declare."
        if uid == geteuid() {
            // The service's reason names identifiers that are similar.
            do { _ = try await manager.openStore(identifier) } catch {
                let reason = Sentence(service: (error as? UbiquitousStoreError)?.message ?? "")
                advice = Sentence(verbatim: "\(reason.text) \(advice.text)")
            }
        }
        return Failure(
            .refused, "There is no store \(Output.quoted(identifier)) for user \(uid).", advice: advice)
    }

    @BusActor
    private func identifier(_ connection: ServiceConnection) async throws -> String {
        if let store = store ?? Variable.identifier.value {
            guard Manifest.isName(store) else {
                throw Failure(
                    .usage, "\(Output.quoted(store)) can't name a store.",
                    advice: "A store's name has 1 to 255 of the characters A-Z a-z 0-9 . _ -, and isn't . or ..")
            }
            return store
        }
        do {
            return try await connection.manager.openStore("").identifier
        } catch let error as UbiquitousStoreError
            where [.ambiguousIdentity, .identityUnknown, .notEntitled].contains(error.code)
        {
            throw Failure(
                .usage, "No store is named.",
                advice: """
                    Name one with --store or in UBIQUITOUS_STORE_IDENTIFIER; \
                    "ubiquitousctl stores" lists those that hold something.
                    """)
        }
    }
}
