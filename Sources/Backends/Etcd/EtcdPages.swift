// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import Replication

/// The rows of a store, collected page by page.
///
/// A server that is not etcd could send pages without end. So the keys have to ascend, a page with others after it must
/// have rows, and the total is bounded.
struct EtcdPages {
    private(set) var rows: [EtcdRow] = []
    private var bytes = 0

    /// About how many bytes of memory the rows take, with the entries that are decoded from them.
    var memory: Int { 2 * bytes + rows.count * RemoteHoldings.entry }

    /// Twice the limit of a store elsewhere, since rows also hold keys and stamps.
    static let mostBytes = 2 * StoreBounds.bytes
    static let mostRows = 2 * StoreBounds.entries

    /// Adds a page.
    /// - Returns: the key at which the next page begins; `nil` if this was the last one.
    /// - Throws: `RemoteError.damaged` if the rows are more than a store can have.
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
