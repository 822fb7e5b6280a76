// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import PlainText
internal import Replication
internal import SDBus
internal import Sealing

/// A backend that logs its steps at the level debug, to find out what is slow or wrong. It logs identifiers of stores,
/// but never a key or a value.
final class LoggingBackend: RemoteBackend {
    private let backend: any RemoteBackend
    private let steps: StepLogger

    /// - Parameters:
    ///   - user: the account's user, as the journal names users.
    ///   - logger: returns the present logger. A reload may change the level.
    init(_ backend: any RemoteBackend, of user: String, _ logger: @escaping @BusActor @Sendable () -> Logger) {
        (self.backend, steps) = (backend, StepLogger(user: user, logger: logger))
    }

    /// The account's key; `nil` if the account is unencrypted or its key is unknown.
    var heldKey: HeldKey? { get async { await keyHolding?.heldKey } }

    var keyHolding: (any KeyHolding)? { backend as? any KeyHolding }

    /// The backend as one that holds the account's key.
    /// - Throws: `RemoteError` with the code `unsupported` if its accounts can't be encrypted.
    static func keyHolding(_ backend: any RemoteBackend) throws(RemoteError) -> any KeyHolding {
        guard let holding = (backend as? LoggingBackend)?.keyHolding else {
            throw RemoteError(.unsupported, "An account at this address can't be encrypted.")
        }
        return holding
    }

    /// Runs work that uses the backend. Cancelling closes the backend, which ends what is under way.
    func untilCancelled<Result: Sendable>(_ work: () async throws -> Result) async rethrows -> Result {
        try await withTaskCancellationHandler {
            try await work()
        } onCancel: {
            EventLoop.task { await self.close() }
        }
    }

    var traits: BackendTraits { backend.traits }

    func open(creatingAccount createsAccount: Bool) async throws(RemoteError) -> RemoteAccount {
        try await steps.step("opens the remote") { () throws(RemoteError) in
            try await backend.open(creatingAccount: createsAccount)
        } outcome: {
            $0.isNew ? "there is a new account" : "there is an account"
        }
    }

    func restore(_ account: String) async throws(RemoteError) -> RemoteAccount {
        try await steps.step("restores the account") { () throws(RemoteError) in
            try await backend.restore(account)
        } outcome: { _ in
            "done"
        }
    }

    func pull(
        after cursor: [UInt8]?, as origin: Origin, published count: UInt64
    ) async throws(RemoteError) -> any RemotePull {
        let pull = try await steps.step(cursor == nil ? "reads the whole account" : "polls") {
            () throws(RemoteError) in
            try await backend.pull(after: cursor, as: origin, published: count)
        } outcome: {
            "stores with changes: \($0.stores.count); its own publication is \($0.ownPublication)"
        }
        return LoggingPull(pull: pull, steps: steps)
    }

    func push(_ publication: Publication) async throws(RemoteError) -> any RemotePush {
        let push = try await steps.step("begins to upload") { () throws(RemoteError) in
            try await backend.push(publication)
        } outcome: {
            "stores to upload: \($0.stores.count) of \(publication.stores.count)"
        }
        return LoggingPush(push: push, steps: steps)
    }

    func doubtPublication() async { await backend.doubtPublication() }

    func collectGarbage(_ request: GarbageCollection) async throws(RemoteError) {
        try await steps.step("collects garbage") { () throws(RemoteError) in
            try await backend.collectGarbage(request)
        } outcome: { _ in
            "done"
        }
    }

    func hints() -> AsyncStream<Void> { backend.hints() }

    func close() async { await backend.close() }
}

private struct LoggingPull: RemotePull {
    let pull: any RemotePull
    let steps: StepLogger

    var account: RemoteAccount { pull.account }
    var devices: [Origin: RemoteDevice] { pull.devices }
    var stores: [String] { pull.stores }
    var ownPublication: OwnPublication { pull.ownPublication }
    var problems: [String] { pull.problems }

    func change(of store: String) async throws(RemoteError) -> RemoteChange {
        try await steps.step("reads the store \(store)") { () throws(RemoteError) in
            try await pull.change(of: store)
        } outcome: {
            $0.isComplete ? "it has arrived completely" : "it has not arrived completely yet"
        }
    }

    func finish(joined stores: Set<String>) async -> PullResult {
        let result = await pull.finish(joined: stores)
        let rest = result.isComplete ? "" : "; something has not arrived yet"
        await steps.tell("has joined \(stores.count == 1 ? "one store" : "\(stores.count) stores")\(rest)")
        return result
    }
}

private struct LoggingPush: RemotePush {
    let push: any RemotePush
    let steps: StepLogger

    var stores: [String] { push.stores }

    func upload(_ snapshot: StoreSnapshot) async throws(RemoteError) {
        try await steps.step("uploads the store \(snapshot.identifier)") { () throws(RemoteError) in
            try await push.upload(snapshot)
        } outcome: { _ in
            "done"
        }
    }

    func finish() async throws(RemoteError) {
        try await steps.step("publishes the upload") { () throws(RemoteError) in
            try await push.finish()
        } outcome: { _ in
            "done"
        }
    }
}

/// Logs the steps of an account. Texts are made only if the log level includes them. Cycles run on the bus's thread, so
/// asking for the logger takes no hop there.
private struct StepLogger: Sendable {
    let user: String
    let logger: @BusActor @Sendable () -> Logger

    func tell(_ what: @autoclosure () -> String) async {
        let logger = await logger()
        logger.debug("\(user) \(what().clause).")
    }

    func step<Result>(
        _ what: @autoclosure () -> String, _ body: () async throws(RemoteError) -> Result,
        outcome: (Result) -> String
    ) async throws(RemoteError) -> Result {
        do {
            let result = try await body()
            await tell("\(what()): \(outcome(result))")
            return result
        } catch {
            await tell("\(what()), which fails: \(error)")
            throw error
        }
    }
}
