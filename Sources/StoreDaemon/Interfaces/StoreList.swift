// SPDX-License-Identifier: Apache-2.0

internal import StoreBus

/// The stores of users for an answer.
///
/// A remote decides how many stores there are, so they may exceed what an answer has room for. Then each user gets the
/// same share, so that no user can hide the others' stores from root.
struct StoreList {
    struct Entry: Equatable {
        let uid: UInt32
        let identifier: String
        let path: String

        /// The size of the entry in an answer, in bytes, with the padding before it.
        var size: Int { 7 + 4 + 4 + identifier.utf8.count + 1 + 3 + 4 + path.utf8.count + 1 }
    }

    private var users: [(entries: [Entry], size: Int)] = []

    /// Adds the next store of the same user, or the first one of the next user.
    /// - Throws: `BusError` if no path can name the store.
    mutating func add(_ identifier: String, of uid: UInt32) throws {
        let path = try BusNames.storePath(uid: uid, identifier: identifier)
        let entry = Entry(uid: uid, identifier: identifier, path: path)
        if users.last?.entries.last?.uid != uid { users.append(([], 0)) }
        users[users.count - 1].entries.append(entry)
        users[users.count - 1].size += entry.size
    }

    /// Returns the stores that fit, in the order in which they were added.
    func entries(atMost bytes: Int) -> [Entry] {
        // 16 bytes for the array's length and the message's end.
        let share = share(of: bytes - 16)
        return users.flatMap { user -> ArraySlice<Entry> in
            var left = share
            return user.entries.prefix { entry in
                left -= entry.size
                return left >= 0
            }
        }
    }

    /// Returns the most bytes for each user. What users with few stores leave goes to the others.
    private func share(of bytes: Int) -> Int {
        var (left, number) = (bytes, users.count)
        for size in users.map(\.size).sorted() {
            if size > left / number { return left / number }
            (left, number) = (left - size, number - 1)
        }
        return .max
    }
}
