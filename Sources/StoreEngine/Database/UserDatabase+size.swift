// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension UserDatabase {
    /// The bytes of the database that hold something; the log beside it, which has a bound of its own, does not count.
    public func size() throws(EngineError) -> Int {
        try read { db in
            func number(_ pragma: String) throws -> Int { try Int.fetchOne(db, sql: "PRAGMA \(pragma)") ?? 0 }
            return try (number("page_count") - number("freelist_count")) * number("page_size")
        }
    }

    /// Has the file never get larger: what would need more fails with `EngineError.diskFull`, once there is no history
    /// left that could give way.
    ///
    /// One that is larger already stays as it is.
    public func bound(fileSize bytes: Int) throws(EngineError) {
        try read { db in
            let pageSize = try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 4096
            _ = try Int.fetchOne(db, sql: "PRAGMA max_page_count = \(max(1, bytes / pageSize))")
        }
        largestSize = bytes
    }

    /// Whether it is the bound of the file that a write has met, and not the end of the disk.
    var mayMakeRoom: Bool {
        guard let largestSize, historyBound != 0, let size = try? size() else { return false }
        return size > largestSize - largestSize / 8
    }

    /// Whether there may be so many bytes of history.
    public func mayFree(_ bytes: Int) -> Bool { historyBound.map { $0 >= bytes } ?? true }

    /// What is removed of the history at once, at least.
    static var leastRoom: Int { 256 << 10 }
}
