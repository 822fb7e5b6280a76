// SPDX-License-Identifier: Apache-2.0

import Replication

/// A table on a server, for one user's account: a row for each store, and the devices that have published. A call of
/// this actor stands for a transaction.
actor Table {
    struct Row {
        var state = StoreState()
        var revision: UInt64 = 0
    }

    struct Publisher {
        var device: RemoteDevice
        var publication: UInt64
    }

    private(set) var account: String?
    private(set) var rows: [String: Row] = [:]
    private(set) var publishers: [Origin: Publisher] = [:]
    private var revision: UInt64 = 0

    /// If two devices create an account at the same time, the second one finds the first one's.
    func makeAccount(_ identifier: String) {
        if account == nil { account = identifier }
    }

    /// Joins a state into the row. A state may be joined twice, late and in any order, so a push needs no condition.
    func join(_ state: StoreState, to store: String, of account: String) -> Bool {
        guard self.account == account else { return false }
        revision += 1
        rows[store, default: Row()].state.join(state)
        rows[store]?.revision = revision
        return true
    }

    func note(_ publisher: Publisher, under origin: Origin, insteadOf former: [Origin]) {
        for origin in former { publishers[origin] = nil }
        publishers[origin] = publisher
    }

    func forget(_ origins: Set<Origin>) {
        for origin in origins { publishers[origin] = nil }
    }

    func empty() { (account, rows, publishers) = (nil, [:], [:]) }
}

/// A backend on a table.
actor TableBackend: RemoteBackend {
    nonisolated let traits = BackendTraits(coalescing: .milliseconds(250), givesHints: false)

    private let table: Table
    private var isClosed = false
    /// The publications of this process, and one that the previous process may have made.
    private var own: Set<UInt64> = []
    private var lookedUp: Set<Origin> = []

    init(_ table: Table) { self.table = table }

    func open(creatingAccount createsAccount: Bool) async throws(RemoteError) -> RemoteAccount {
        try checkOpen()
        let identifier = String(UInt64.random(in: .min ... .max), radix: 16)
        if createsAccount { await table.makeAccount(identifier) }
        guard let account = await table.account else {
            throw RemoteError(.noAccount, "There is no account here yet.")
        }
        return RemoteAccount(identifier: account, isNew: await table.publishers.isEmpty)
    }

    /// The table has room for one account only. If another was created meanwhile, the device continues with that one.
    func restore(_ account: String) async throws(RemoteError) -> RemoteAccount {
        try checkOpen()
        await table.makeAccount(account)
        let present = await table.account ?? account
        return RemoteAccount(identifier: present, aliases: present == account ? [] : [account])
    }

    func pull(
        after cursor: [UInt8]?, as origin: Origin, published count: UInt64
    ) async throws(RemoteError) -> any RemotePull {
        let account = try await presentAccount()
        let publishers = await table.publishers
        return TablePull(
            account: account,
            devices: publishers.mapValues(\.device),
            ownPublication: look(at: publishers[origin], under: origin),
            rows: await table.rows,
            joined: TableCursor.decode(cursor)
        )
    }

    func push(_ publication: Publication) async throws(RemoteError) -> any RemotePush {
        guard try await presentAccount().isNamed(publication.account) else {
            throw RemoteError(.reset, "There is another account here than the one that is signed in.")
        }
        // Don't replace a clone's publication before a pull has seen it.
        if let present = await table.publishers[publication.origin], lookedUp.contains(publication.origin),
            !own.contains(present.publication)
        {
            throw RemoteError(
                .unavailable, "A clone publishes under this device's origin, which the next poll replaces.")
        }
        let number = UInt64.random(in: .min ... .max)
        own.insert(number)
        return TablePush(table: table, publication: publication, number: number)
    }

    /// Rows belong to all devices, so the only leftovers are the names of devices.
    func collectGarbage(_ request: GarbageCollection) async throws(RemoteError) {
        guard try await presentAccount().isNamed(request.account) else {
            throw RemoteError(.reset, "There is another account here than the one that is signed in.")
        }
        await table.forget(request.forgottenOrigins.subtracting([request.origin]))
    }

    nonisolated func hints() -> AsyncStream<Void> { AsyncStream { $0.finish() } }

    func close() async { isClosed = true }

    private func checkOpen() throws(RemoteError) {
        if isClosed { throw RemoteError(.unavailable, "The account was closed.") }
    }

    private func presentAccount() async throws(RemoteError) -> RemoteAccount {
        try checkOpen()
        guard let account = await table.account else {
            throw RemoteError(.reset, "The account that was here is gone.")
        }
        return RemoteAccount(identifier: account)
    }

    private func look(at publisher: Table.Publisher?, under origin: Origin) -> OwnPublication {
        let isFirstLook = lookedUp.insert(origin).inserted
        // What the device has pushed is part of the rows, and stays even if its name is gone.
        guard let publisher else { return .asPublished }
        if isFirstLook { own.insert(publisher.publication) }
        return own.contains(publisher.publication) ? .asPublished : .foreign
    }
}

/// A pull works on a copy of the rows, so they can't change while it reads them.
private struct TablePull: RemotePull {
    let account: RemoteAccount
    let devices: [Origin: RemoteDevice]
    let ownPublication: OwnPublication
    let rows: [String: Table.Row]
    let joined: [String: UInt64]

    var problems: [String] { [] }
    var stores: [String] { rows.filter { joined[$0.key] != $0.value.revision }.keys.sorted() }

    /// The state with its whole version vector and all its entries, never one without the other (C3).
    func change(of store: String) async throws(RemoteError) -> RemoteChange {
        RemoteChange(state: rows[store]?.state ?? StoreState(), isComplete: true)
    }

    func finish(joined stores: Set<String>) async -> PullResult {
        var joined = joined
        for store in stores { joined[store] = rows[store]?.revision }
        // The copy has all rows, so the pull is complete. The next one offers again what was not joined.
        return PullResult(cursor: TableCursor.encode(joined), isComplete: true)
    }
}

private struct TablePush: RemotePush {
    let table: Table
    let publication: Publication
    let number: UInt64

    var stores: [String] { publication.stores.filter { $0.sequence != $0.published }.map(\.identifier) }

    func upload(_ snapshot: StoreSnapshot) async throws(RemoteError) {
        guard await table.join(snapshot.state, to: snapshot.identifier, of: publication.account) else {
            throw RemoteError(.reset, "There is another account here than the one that is signed in.")
        }
    }

    func finish() async throws(RemoteError) {
        let publisher = Table.Publisher(device: publication.device, publication: number)
        await table.note(publisher, under: publication.origin, insteadOf: publication.formerOrigins)
    }
}

/// A cursor: the revision of each store that was joined. Any other bytes count as a cursor that has seen nothing.
private enum TableCursor {
    static func encode(_ joined: [String: UInt64]) -> [UInt8] {
        Array(joined.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: "\n").utf8)
    }

    static func decode(_ cursor: [UInt8]?) -> [String: UInt64] {
        var joined: [String: UInt64] = [:]
        for line in String(decoding: cursor ?? [], as: UTF8.self).split(separator: "\n") {
            let parts = line.split(separator: " ")
            if parts.count == 2 { joined[String(parts[0])] = UInt64(parts[1]) }
        }
        return joined
    }
}
