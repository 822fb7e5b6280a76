// SPDX-License-Identifier: Apache-2.0

internal import StoreBus

/// The stores of users, as an answer lists them.
///
/// How many there are is for a remote to decide, and so may be more than an answer has room for. Then each user has the
/// same share of it, so that no user can hide the others' stores from root.
struct StoreList {
    struct Entry: Equatable {
        let uid: UInt32
        let identifier: String
        let path: String

        /// How many bytes it takes in an answer, with the padding before it.
        var size: Int { 7 + 4 + 4 + identifier.utf8.count + 1 + 3 + 4 + path.utf8.count + 1 }
    }

    private var users: [(entries: [Entry], size: Int)] = []

    /// Adds the next store of a user, or the first one of the next user.
    /// - Throws: `BusError` if no path can name it.
    mutating func add(_ identifier: String, of uid: UInt32) throws {
        let path = try BusNames.storePath(uid: uid, identifier: identifier)
        let entry = Entry(uid: uid, identifier: identifier, path: path)
        if users.last?.entries.last?.uid != uid { users.append(([], 0)) }
        users[users.count - 1].entries.append(entry)
        users[users.count - 1].size += entry.size
    }

    /// The stores that there is room for, in the order in which they were added.
    func entries(atMost bytes: Int) -> [Entry] {
        // The array's length, and the message's end.
        let share = share(of: bytes - 16)
        return users.flatMap { user -> ArraySlice<Entry> in
            var left = share
            return user.entries.prefix { entry in
                left -= entry.size
                return left >= 0
            }
        }
    }

    /// What each user has at most: what those who need less leave is the others'.
    private func share(of bytes: Int) -> Int {
        var (left, number) = (bytes, users.count)
        for size in users.map(\.size).sorted() {
            if size > left / number { return left / number }
            (left, number) = (left - size, number - 1)
        }
        return .max
    }
}
