// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import Replication

/// What one transaction sees of the account.
struct EtcdLook {
    let position: EtcdPosition
    /// The cluster's revision, and which cluster it is.
    let (revision, cluster): (Int64, UInt64)
    let own: EtcdDevice?
    /// Stores that have changed.
    let changed: Set<String>
    /// Stores of which entries went without another in their place.
    let gone: Set<String>

    /// The history of the account is the one that a transaction was made in.
    func isKnown(_ token: UInt64) -> Bool {
        !Rule.knownHistory.isOn || position.account.tokens.contains(token)
    }

    /// The rows were moved to another cluster, or to one that was made anew, so that they have other revisions.
    func isElsewhere(_ cursor: EtcdCursor) -> Bool {
        let isOther = cluster != cursor.cluster && cluster != 0 && cursor.cluster != 0
        return isOther || Rule.accountRevision.isOn && revision < cursor.revision
    }

    /// What is asked: the account's row, that of this device, then rows of devices, of stores, and of stores of which
    /// entries went.
    /// - Parameters:
    ///   - revision: what has changed since is wanted.
    ///   - hasDevices: the rows of devices are known up to there.
    static func ranges(
        since revision: Int64, hasDevices: Bool, as origin: Origin, _ layout: EtcdLayout
    ) -> [EtcdRange] {
        [
            EtcdRange(layout.account), EtcdRange(layout.device(origin)),
            EtcdRange(under: layout.devices, since: hasDevices ? revision : 0),
            EtcdRange(under: layout.stores, since: revision, keysOnly: true),
            EtcdRange(under: layout.gone, since: revision, keysOnly: true),
        ]
    }

    /// What was found in ``ranges(since:hasDevices:as:_:)``.
    init(_ outcome: EtcdOutcome, at position: EtcdPosition, _ layout: EtcdLayout) throws(RemoteError) {
        let found = outcome.found
        self.position = position
        (revision, cluster) = (outcome.revision, outcome.cluster)
        own = found[1].rows.first.flatMap { try? EtcdDevice(decoding: $0.value) }
        changed = try Self.stores(found[3].rows, under: layout.stores, layout)
        gone = try Self.stores(found[4].rows, under: layout.gone, layout)
    }

    /// The stores that rows are of. Whoever may write to the cluster may name any number of them.
    private static func stores(
        _ rows: [EtcdRow], under folder: [UInt8], _ layout: EtcdLayout
    ) throws(RemoteError) -> Set<String> {
        guard rows.count <= EtcdLimits.stores else {
            throw RemoteError(
                .damaged, "The account names \(rows.count) stores, and \(EtcdLimits.stores) is the most that are read.")
        }
        return Set(rows.compactMap { layout.store(of: $0, under: folder) }.filter(\.isStoreIdentifier))
    }
}
