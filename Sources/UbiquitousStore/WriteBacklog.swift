// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

/// A write of the app: of one key, or of several keys together.
struct Write {
    /// What it changes.
    fileprivate(set) var changes: Changes
    /// The values' size, as the limits count it.
    let size: Int
    /// The callers that wait for its reply.
    var tickets: [Ticket]
    /// When it was made, in microseconds since 1970.
    let time: UInt64
    /// For a late write, the generation that was known when it was made. What changed after it wins.
    fileprivate(set) var since: UInt64?

    init(_ changes: Changes, size: Int, tickets: [Ticket] = [], time: UInt64 = 0) {
        self.changes = changes
        self.size = size
        self.tickets = tickets
        self.time = time
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

    /// Takes the first writes, which can be sent together: ordinary ones, or late ones of one time. The service keeps
    /// milliseconds.
    mutating func take(atMost count: Int = .max) -> [Write] {
        guard let first = writes.first else { return [] }
        func goesWithFirst(_ write: Write) -> Bool {
            write.since == first.since && (first.since == nil || write.time / 1000 == first.time / 1000)
        }
        let taken = Array(writes.prefix(count).prefix(while: goesWithFirst))
        writes.removeFirst(taken.count)
        size -= taken.reduce(0) { $0 + $1.size }
        return taken
    }

    /// Puts back writes that were taken.
    mutating func putBack(_ taken: [Write]) {
        writes = taken + writes
        size += taken.reduce(0) { $0 + $1.size }
    }

    // MARK: Late writes

    /// Makes those writes late that could not be sent before the service went.
    /// - Parameter generation: what was known of the service then.
    mutating func noteLoss(at generation: UInt64) {
        for index in writes.indices where writes[index].since == nil { writes[index].since = generation }
    }

    /// Leaves each key of the late writes to the last of them, because an earlier write would make that one lose.
    /// - Parameters:
    ///   - own: the keys whose present value in the service this program has set before.
    ///   - generation: the generation that the service has.
    mutating func prepareLate(following own: Set<Text>, at generation: UInt64) {
        var later: Set<Text> = []
        var kept: [Write] = []
        for var write in writes.reversed() {
            let keys = write.changes.keys
            write.changes = write.changes.filter { !later.contains($0.key) }
            if write.since != nil { later.formUnion(keys) }
            let following = write.since == nil ? [:] : write.changes.filter { own.contains($0.key) }
            if !following.isEmpty {
                // It is sent after the rest, so it has the tickets.
                var part = Write(following, size: 0, tickets: write.tickets, time: write.time)
                part.since = generation
                kept.append(part)
                write.changes = write.changes.filter { following[$0.key] == nil }
                write.tickets = []
            }
            if write.changes.isEmpty, let next = kept.indices.last {
                kept[next].tickets = write.tickets + kept[next].tickets
            } else {
                kept.append(write)
            }
        }
        writes = kept.reversed()
        size = writes.reduce(0) { $0 + $1.size }
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
