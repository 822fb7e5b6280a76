// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

/// A write of the app: of one key, or of several keys together.
struct Write {
    /// What it changes.
    let changes: Changes
    /// The values' size, as the limits count it.
    let size: Int
    /// The callers that wait for its reply.
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
/// It holds no more than a store can: twice the limits, because device-local keys have limits of their own. A write is
/// dropped if a later one of the same key replaces it and isn't larger, so that the service accepts it wherever it
/// would accept the first; and, if there is no room otherwise, also if the later one is larger.
struct WriteBacklog {
    private(set) var writes: [Write] = []
    private var size = 0
    /// With this many writes it is worth looking for replaced ones.
    private var threshold = 64

    static let maximumCount = 2 * Limits.standard.keys
    static let maximumSize = 2 * Limits.standard.totalBytes

    var isEmpty: Bool { writes.isEmpty }

    /// The keys that are written.
    var keys: Set<Text> { Set(writes.flatMap(\.changes.keys)) }

    /// Returns what the last write of a key sets; `nil` if there is none.
    func value(_ key: Text) -> Value?? {
        writes.last { $0.changes[key] != nil }?.changes[key]
    }

    /// Adds a write, if there is room. If there is none, the backlog is as before.
    mutating func append(_ write: Write) -> Bool {
        let mayBeFull = writes.count >= Self.maximumCount || size + write.size > Self.maximumSize
        let former = mayBeFull ? self : nil
        writes.append(write)
        size += write.size
        if writes.count > threshold || size > Self.maximumSize { compact(droppingSmaller: false) }
        if isFull { compact(droppingSmaller: true) }
        if isFull, let former {
            self = former
            return false
        }
        return true
    }

    /// Makes a caller wait for the last write, if there is one.
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

    /// Puts back writes that were taken.
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
