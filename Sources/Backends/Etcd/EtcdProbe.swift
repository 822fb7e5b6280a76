// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import Blobs
internal import HTTPClient
internal import Replication

/// Tests a cluster: first whether its members can be reached and are what they should be, then whether they do what a
/// backend needs. For that it writes a row with a random name, and deletes it.
struct EtcdProbe {
    private let client: EtcdClient
    private let environment: Environment
    private var hasWritten = false
    /// The steps that were taken. If one failed, it is the last.
    private(set) var checks: [BackendCheck] = []

    init(_ client: EtcdClient, _ environment: Environment) {
        (self.client, self.environment) = (client, environment)
    }

    mutating func run() async {
        let key = client.url.prefix + Array("/check-\(environment.random().hexDigits)".utf8)
        do throws(RemoteError) {
            let statuses = try await connect()
            try checkVersion(statuses)
            checks.append(.clock(statuses.compactMap(\.time).first, environment))
            try await signIn()
            try await step("read") { client throws(RemoteError) in
                _ = try await client.range(EtcdRange(key))
                return client.isOpen || client.proof == .nothing ? Self.openness : ""
            }
            try checkSpace(statuses)
            try await write(key)
            try await findAccount()
        } catch {
            // The failed step holds the error. A row that was written must not stay.
            if hasWritten { do { _ = try await client.commit(EtcdTransaction(operations: [.delete(key)])) } catch {} }
        }
    }

    private mutating func step(
        _ step: String, _ body: (EtcdClient) async throws(RemoteError) -> String
    ) async throws(RemoteError) {
        do throws(RemoteError) {
            checks.append(BackendCheck(step: step, isPassed: true, detail: try await body(client)))
        } catch {
            throw fail(step, error)
        }
    }

    private mutating func fail(_ step: String, _ error: RemoteError) -> RemoteError {
        checks.append(BackendCheck(step: step, failed: error))
        return error
    }

    // MARK: Members

    /// Asks all members for their status, with short timeouts, so that a check of many ends soon. One that answers is
    /// enough, but the user should know about the others.
    private mutating func connect() async throws(RemoteError) -> [EtcdClient.Status] {
        var (statuses, failures): ([EtcdClient.Status], [RemoteError]) = ([], [])
        let time = Duration.seconds(client.url.members.count > 1 ? 2 : 5)
        for member in client.url.members {
            do throws(EtcdFailure) { statuses.append(try await client.status(of: member, within: time)) } catch {
                failures.append(error.remoteError(client))
                client.moveOn(from: member)
            }
        }
        let words = failures.map(\.message).joined(separator: " ")
        if statuses.isEmpty {
            throw fail("connect", RemoteError(failures.first?.code ?? .unavailable, words))
        }
        checks.append(BackendCheck(step: "connect", isPassed: true, detail: words))
        return statuses
    }

    private mutating func checkVersion(_ statuses: [EtcdClient.Status]) throws(RemoteError) {
        let versions = Set(statuses.map(\.version)).sorted().joined(separator: ", ")
        guard statuses.contains(where: \.hasLeader) else {
            throw fail(
                "version",
                RemoteError(
                    .unavailable, "The cluster has no leader: more than half of its members are down. Restart them."))
        }
        checks.append(BackendCheck(step: "version", isPassed: true, detail: "etcd \(versions)."))
    }

    private mutating func checkSpace(_ statuses: [EtcdClient.Status]) throws(RemoteError) {
        let alarms = statuses.flatMap(\.alarms).joined(separator: " ")
        if alarms.contains("NOSPACE") {
            throw fail("space", RemoteError(.full, "There is no space left: the cluster has raised the alarm NOSPACE."))
        }
        if alarms.contains("CORRUPT") {
            throw fail(
                "space", RemoteError(.denied, "The cluster has raised the alarm CORRUPT, and rejects all requests."))
        }
        checks.append(BackendCheck(step: "space", isPassed: true))
    }

    // MARK: What a backend does

    private mutating func signIn() async throws(RemoteError) {
        try await step("sign in") { client throws(RemoteError) in
            do throws(EtcdFailure) { _ = try await client.token(anew: true, .seconds(5)) } catch {
                throw error.remoteError(client)
            }
            return ""
        }
    }

    private static let openness =
        "Authentication is off: anyone who can reach the cluster can read and change everything in it. "
        + "\"etcdctl auth enable\" switches it on, once there is a user root."

    /// Tests conditions. Devices depend on them not to overwrite what they have not seen.
    private mutating func write(_ key: [UInt8]) async throws(RemoteError) {
        let (first, second) = (Array("first".utf8), Array("second".utf8))
        hasWritten = true
        try await step("write") { client throws(RemoteError) in
            // The response doesn't say whether this wrote the row, since it may be the response to a second attempt.
            _ = try await client.commit(
                EtcdTransaction(conditions: [.isMissing(key)], operations: [.put(key, first)]))
            let again = try await client.commit(
                EtcdTransaction(conditions: [.isMissing(key)], operations: [.put(key, second)]))
            guard !again.isDone, try await client.range(EtcdRange(key)).rows.rows.first?.value == first
            else {
                throw RemoteError(
                    .unsupported, "Transactions don't do what those of etcd do. Check that the address is a cluster's.")
            }
            return ""
        }
        try await step("delete") { client throws(RemoteError) in
            _ = try await client.commit(
                EtcdTransaction(conditions: [.value(key, is: first)], operations: [.delete(key)]))
            guard try await client.range(EtcdRange(key)).rows.rows.isEmpty else {
                throw RemoteError(.unsupported, "What was deleted is still there.")
            }
            return ""
        }
    }

    /// Finds the account. It is no failure if there is none: the user may be about to create it.
    private mutating func findAccount() async throws(RemoteError) {
        let backend = EtcdBackend(client, environment)
        let blobs = BlobBackend(storage: EtcdStorage(client, environment), environment: environment)
        try await step("account") { _ throws(RemoteError) in
            do throws(RemoteError) {
                return "The account \(try await backend.open(creatingAccount: false).identifier) is here."
            } catch {
                if error.code == .noAccount { return error.message }
                if error.code == .keyNeeded { return await blobs.encryptedAccount() }
                throw error
            }
        }
    }
}
