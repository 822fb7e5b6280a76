// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import Blobs
internal import PropertyList
internal import Replication

/// The row that says which account a cluster has: finds it, makes it, and tells whether it still is that of the account
/// that was opened.
final class EtcdAccountRow {
    private let client: EtcdClient
    private let layout: EtcdLayout
    private let environment: Environment
    private let limits: EtcdLimits
    /// The identifiers of the account that was opened; none before.
    private var identifiers: Set<Bits128> = []
    /// The account whose rows are read behind the fence: this device is moving it to a key.
    var moving: EtcdAccount?

    init(_ client: EtcdClient, _ layout: EtcdLayout, _ environment: Environment, _ limits: EtcdLimits) {
        (self.client, self.layout, self.environment, self.limits) = (client, layout, environment, limits)
    }

    /// The account is opened.
    func enter(_ position: EtcdPosition) { identifiers = position.account.identifiers }

    /// Puts an account's row into the place where it isn't there.
    func restore(_ identifier: Bits128) async throws(RemoteError) -> EtcdPosition {
        let present = try await find()
        var position = if let present { present } else { try await make(identifier) }
        for _ in 0..<EtcdPublishing.mostAttempts where !position.account.identifiers.contains(identifier) {
            position = try await add(identifier, to: position)
        }
        return position
    }

    /// Makes the account, or finds that somebody else has.
    func make(_ identifier: Bits128) async throws(RemoteError) -> EtcdPosition {
        let account = EtcdAccount([identifier], token: environment.random())
        let outcome = try await client.commit(
            EtcdTransaction(
                conditions: [.isMissing(layout.account)], operations: [.put(layout.account, account.encoded)],
                otherwise: [.range(EtcdRange(layout.account))]))
        if outcome.isDone { return EtcdPosition(account, outcome.revision) }
        guard let position = try self.position(outcome.found.first, outcome.revision) else {
            throw RemoteError(.unavailable, "The account was made and removed in one moment.")
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

    /// Where the account stands now; `nil` if there is none.
    func find() async throws(RemoteError) -> EtcdPosition? {
        let (rows, revision) = try await client.range(EtcdRange(layout.account))
        return try position(rows, revision)
    }

    /// The row as a range found it.
    private func position(_ rows: EtcdRows?, _ revision: Int64) throws(RemoteError) -> EtcdPosition? {
        guard let row = rows?.rows.first else { return nil }
        if row.value == EtcdAccount.fence {
            guard let moving else { throw RemoteError.keyNeeded }
            return EtcdPosition(moving, row.modified)
        }
        do throws(EtcdFlaw) {
            // Others' transactions count, too, and a cluster that was restored from a copy may have lost some of theirs,
            // and none of this account's: what is written then has revisions that there were before.
            let revision = Rule.accountRevision.isOn ? row.modified : revision
            return EtcdPosition(try EtcdAccount(decoding: row.value), revision)
        } catch {
            if error.isTooNew { throw .tooNew }
            throw RemoteError.senselessAccount
        }
    }

    /// The row as it is, which is to be that of the account that was opened.
    func present() async throws(RemoteError) -> EtcdPosition {
        let (rows, revision) = try await client.range(EtcdRange(layout.account))
        return try present(rows, revision)
    }

    /// The row as a range found it, which is to be that of the account that was opened.
    func present(_ rows: EtcdRows?, _ revision: Int64) throws(RemoteError) -> EtcdPosition {
        guard let position = try self.position(rows, revision) else {
            throw RemoteError(.reset, "The account that was here is gone.")
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
    /// The revision of the cluster that made it so.
    let revision: Int64

    init(_ account: EtcdAccount, _ revision: Int64) { (self.account, self.revision) = (account, revision) }

    var row: [UInt8] { account.encoded }
    var token: UInt64 { account.tokens.first ?? 0 }
}

extension EtcdAccount {
    /// The account as it is known elsewhere: a new one has seen no transaction but the one that made it.
    var remote: RemoteAccount {
        let sorted = identifiers.sorted()
        return RemoteAccount(
            identifier: sorted.first?.description ?? "", aliases: Set(sorted.dropFirst().map(\.description)),
            isNew: tokens.count == 1)
    }
}

extension RemoteError {
    static let senselessAccount = RemoteError(.damaged, "The row that says which account is here makes no sense.")
}
