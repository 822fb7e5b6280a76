// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import Blobs
internal import PropertyList
internal import Replication

/// Finds and creates the row that says which account a cluster holds, and checks that it is still the row of the
/// account that was opened.
final class EtcdAccountRow {
    private let client: EtcdClient
    private let layout: EtcdLayout
    private let environment: Environment
    private let limits: EtcdLimits
    /// The identifiers of the account that was opened; empty before.
    private var identifiers: Set<Bits128> = []
    /// The account that this device is moving to a key, and whose rows it reads behind the fence; `nil` if none.
    var moving: EtcdAccount?

    init(_ client: EtcdClient, _ layout: EtcdLayout, _ environment: Environment, _ limits: EtcdLimits) {
        (self.client, self.layout, self.environment, self.limits) = (client, layout, environment, limits)
    }

    /// Notes that the account was opened.
    func enter(_ position: EtcdPosition) { identifiers = position.account.identifiers }

    /// Puts back an account's row that is gone from the remote.
    func restore(_ identifier: Bits128) async throws(RemoteError) -> EtcdPosition {
        let present = try await find()
        var position = if let present { present } else { try await make(identifier) }
        for _ in 0..<EtcdPublishing.mostAttempts where !position.account.identifiers.contains(identifier) {
            position = try await add(identifier, to: position)
        }
        return position
    }

    /// Creates the account, or finds the one that another device has created meanwhile.
    func make(_ identifier: Bits128) async throws(RemoteError) -> EtcdPosition {
        let account = EtcdAccount([identifier], token: environment.random())
        let outcome = try await client.commit(
            EtcdTransaction(
                conditions: [.isMissing(layout.account)], operations: [.put(layout.account, account.encoded)],
                otherwise: [.range(EtcdRange(layout.account))]))
        if outcome.isDone { return EtcdPosition(account, outcome.revision) }
        guard let position = try self.position(outcome.found.first, outcome.revision) else {
            throw RemoteError(.unavailable, "The account was removed just after it was created. Try again.")
        }
        return position
    }

    private func add(_ identifier: Bits128, to position: EtcdPosition) async throws(RemoteError) -> EtcdPosition {
        var account = position.account
        account.identifiers.insert(identifier)
        account.add(environment.random(), keeping: limits.tokens)
        let outcome = try await client.commit(
            EtcdTransaction(
                conditions: [.value(layout.account, is: position.row)],
                operations: [.put(layout.account, account.encoded)], otherwise: [.range(EtcdRange(layout.account))]))
        if outcome.isDone { return EtcdPosition(account, outcome.revision) }
        if let present = try self.position(outcome.found.first, outcome.revision) { return present }
        return try await make(identifier)
    }

    /// Returns the account's present position; `nil` if there is no account.
    func find() async throws(RemoteError) -> EtcdPosition? {
        let (rows, revision) = try await client.range(EtcdRange(layout.account))
        return try position(rows, revision)
    }

    /// Reads the row that a range has found; `nil` if there is none.
    private func position(_ rows: EtcdRows?, _ revision: Int64) throws(RemoteError) -> EtcdPosition? {
        guard let row = rows?.rows.first else { return nil }
        if row.value == EtcdAccount.fence {
            guard let moving else { throw RemoteError.keyNeeded }
            return EtcdPosition(moving, row.modified)
        }
        do throws(EtcdFlaw) {
            // The cluster's revision counts other accounts' transactions too. A restored backup may lack some of those
            // and none of this account's. Then the cluster's revision recurs, and changes since it would be missed.
            let revision = Rule.accountRevision.isOn ? row.modified : revision
            return EtcdPosition(try EtcdAccount(decoding: row.value), revision)
        } catch {
            if error.isTooNew { throw .tooNew }
            throw RemoteError.corruptAccount
        }
    }

    /// Reads the row, and checks that it is that of the account that was opened.
    func present() async throws(RemoteError) -> EtcdPosition {
        let (rows, revision) = try await client.range(EtcdRange(layout.account))
        return try present(rows, revision)
    }

    /// Checks that the row that a range has found is that of the account that was opened.
    func present(_ rows: EtcdRows?, _ revision: Int64) throws(RemoteError) -> EtcdPosition {
        guard let position = try self.position(rows, revision) else {
            throw RemoteError.accountGone
        }
        if !identifiers.isEmpty, identifiers.isDisjoint(with: position.account.identifiers) {
            throw RemoteError(.reset, "There is another account here than before.")
        }
        identifiers.formUnion(position.account.identifiers)
        return position
    }
}

/// A state of the account's row. Equal rows are the same moment of one history.
struct EtcdPosition: Equatable {
    let account: EtcdAccount
    /// The revision of the cluster that last changed the row.
    let revision: Int64

    init(_ account: EtcdAccount, _ revision: Int64) { (self.account, self.revision) = (account, revision) }

    var row: [UInt8] { account.encoded }
    var token: UInt64 { account.tokens.first ?? 0 }
}

extension EtcdAccount {
    /// The account as the engine knows it. In a new one, the row names only the transaction that created it.
    var remote: RemoteAccount {
        let sorted = identifiers.sorted()
        return RemoteAccount(
            identifier: sorted.first?.description ?? "", aliases: Set(sorted.dropFirst().map(\.description)),
            isNew: tokens.count == 1)
    }
}

extension RemoteError {
    static let corruptAccount = RemoteError(.damaged, "The row that says which account the cluster holds is corrupt.")
}
