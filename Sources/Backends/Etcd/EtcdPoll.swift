// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import Replication

/// What the transaction that begins a pull finds out about the account.
struct EtcdPoll {
    let position: EtcdPosition
    /// The cluster's revision, and its identifier.
    let (revision, cluster): (Int64, UInt64)
    let own: EtcdDevice?
    /// The stores that have changed.
    let changed: Set<String>
    /// The stores of which entry rows were deleted.
    let gone: Set<String>

    /// Returns whether the account's history contains a transaction.
    func isKnown(_ token: UInt64) -> Bool {
        !Rule.knownHistory.isOn || position.account.tokens.contains(token)
    }

    /// Returns whether the cursor's revision is another cluster's, or of a time that the cluster has lost.
    func isElsewhere(_ cursor: EtcdCursor) -> Bool {
        let isOther = cluster != cursor.cluster && cluster != 0 && cursor.cluster != 0
        return isOther || Rule.accountRevision.isOn && revision < cursor.revision
    }

    /// Returns what to read: the account's row, this device's, then those of devices, of stores, and of stores of which
    /// entry rows were deleted.
    /// - Parameters:
    ///   - revision: the revision since which rows have changed.
    ///   - hasDevices: whether the rows of devices are known up to that revision.
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

    /// Decodes what was found in ``ranges(since:hasDevices:as:_:)``.
    init(_ outcome: EtcdOutcome, at position: EtcdPosition, _ layout: EtcdLayout) throws(RemoteError) {
        let found = outcome.found
        self.position = position
        (revision, cluster) = (outcome.revision, outcome.cluster)
        own = found[1].rows.first.flatMap { try? EtcdDevice(decoding: $0.value) }
        changed = try Self.stores(found[3].rows, under: layout.stores, layout)
        gone = try Self.stores(found[4].rows, under: layout.gone, layout)
    }

    /// Returns the stores that rows belong to. Their number is bounded, since anyone with access may write rows.
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
