// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import Replication

/// The rows of a store, page by page.
///
/// A member that is not etcd may answer pages without end. So the keys have to ascend, a page that others follow has
/// rows, and all pages together have a bound.
struct EtcdPages {
    private(set) var rows: [EtcdRow] = []
    private var bytes = 0

    /// About how many bytes the rows take, and the entries that are made of them.
    var memory: Int { 2 * bytes + rows.count * RemoteHoldings.entry }

    /// Twice what a store may have elsewhere, as rows hold keys and stamps too.
    static let mostBytes = 2 * EntryLimits.storeBytes
    static let mostRows = 2 * EntryLimits.entries

    /// Adds a page.
    /// - Returns: the key from which the next page is asked for; `nil` if this was the last one.
    /// - Throws: `RemoteError.damaged` where the rows go on and can't be a store.
    mutating func take(_ page: EtcdRows, of store: String) throws(RemoteError) -> [UInt8]? {
        for row in page.rows {
            if let last = rows.last, !last.key.lexicographicallyPrecedes(row.key) { throw EtcdBackend.corrupt }
            bytes += row.key.count + row.value.count
            guard bytes <= Self.mostBytes, rows.count < Self.mostRows else { throw Self.excess(store) }
            rows.append(row)
        }
        guard page.hasMore else { return nil }
        guard let last = page.rows.last else { throw EtcdBackend.corrupt }
        return last.key + [0]
    }

    static func excess(_ store: String) -> RemoteError {
        RemoteError(.damaged, "The store \(store) is larger in the cluster than a store may be.")
    }
}
