// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

/// A write of the app: of one key, or of several that only go together.
struct Write {
    /// What it changes.
    let changes: Changes
    /// The values' size, as the limits count it.
    let size: Int
    /// Who waits for its answer.
    var tickets: [Ticket]

    init(_ changes: Changes, size: Int, tickets: [Ticket] = []) {
        self.changes = changes
        self.size = size
        self.tickets = tickets
    }

    fileprivate var onlyKey: Text? { changes.count == 1 ? changes.keys.first : nil }
}

/// Writes in the order in which they were made.
///
/// It holds no more than a store can: twice the limits, since keys that stay on the device have limits of their own.
/// A write is dropped where a later one of the same key replaces it and isn't larger, so that it is taken wherever
/// the first one would be; and, if there is no room without that, where a larger one replaces it.
struct WriteBacklog {
    private(set) var writes: [Write] = []
    private var size = 0
    /// As many writes make it worth while to look for those that are replaced.
    private var threshold = 64

    static let maximumCount = 2 * Limits.standard.keys
    static let maximumSize = 2 * Limits.standard.totalBytes

    var isEmpty: Bool { writes.isEmpty }

    /// The keys that are written.
    var keys: Set<Text> { Set(writes.flatMap(\.changes.keys)) }

    /// What the last write of a key sets; `nil` if there is none.
    func value(_ key: Text) -> Value?? {
        writes.last { $0.changes[key] != nil }?.changes[key]
    }

    /// Adds a write, if there is room.
    mutating func append(_ write: Write) -> Bool {
        writes.append(write)
        size += write.size
        if writes.count > threshold || size > Self.maximumSize { compact(droppingSmaller: false) }
        if isFull { compact(droppingSmaller: true) }
        if !isFull { return true }
        writes.removeLast()
        size -= write.size
        return false
    }

    /// Has somebody wait for the last write, if there is one.
    mutating func addTicket(_ ticket: Ticket) -> Bool {
        guard let last = writes.indices.last else { return false }
        writes[last].tickets.append(ticket)
        return true
    }

    /// Takes the first writes, or all.
    mutating func take(_ count: Int?) -> [Write] {
        let taken = Array(writes.prefix(count ?? writes.count))
        writes.removeFirst(taken.count)
        size -= taken.reduce(0) { $0 + $1.size }
        return taken
    }

    /// Puts writes back that were taken.
    mutating func putBack(_ taken: [Write]) {
        writes = taken + writes
        size += taken.reduce(0) { $0 + $1.size }
    }

    private var isFull: Bool { writes.count > Self.maximumCount || size > Self.maximumSize }

    private mutating func compact(droppingSmaller: Bool) {
        var kept: [Write] = []
        var later: [Text: Int] = [:]
        for write in writes.reversed() {
            if let key = write.onlyKey, let index = later[key], droppingSmaller || kept[index].size <= write.size {
                kept[index].tickets = write.tickets + kept[index].tickets
            } else {
                if let key = write.onlyKey { later[key] = kept.count }
                kept.append(write)
            }
        }
        writes = kept.reversed()
        size = writes.reduce(0) { $0 + $1.size }
        threshold = max(64, 2 * writes.count)
    }
}
