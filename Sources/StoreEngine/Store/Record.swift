// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication

/// How a change came into a replica.
package enum Cause: Int64, Sendable {
    /// A write on this device.
    case written = 0
    /// Another device's change, joined.
    case joined = 1
    /// A value from the first download of the account.
    case downloaded = 2
    /// Carried over when the account changed, or removed from the device-local part when the key stopped being local.
    case migrated = 3
    /// The entry was dropped, because another device has seen it and no longer holds it.
    case dropped = 4

    /// Whether the change was made here. The remote doesn't have such a change until it is published.
    var isOwn: Bool { self == .written || self == .migrated }
    /// SQL: the same, for a row.
    static let isOwn = "cause IN (\(written.rawValue), \(migrated.rawValue))"
}

/// An entry in memory.
struct Record: Sendable {
    var stamp: Stamp
    var n: UInt64
    var content: Content
    /// The store's generation in which the key's visible value last changed.
    var generation: UInt64
    /// The sequence of the entry's row among the replica's changes.
    var sequence: UInt64
    var cause: Cause
    /// The sequences of the rows that are the key's history, oldest first; at most as many as are kept.
    var former: [UInt64] = []

    enum Content: Sendable {
        /// A value that may be shown, and its size as counted against the limits.
        case value(Value, size: Int)
        /// Bytes that break the rules for keys or values. They are passed on unchanged, and not shown.
        case hidden([UInt8])
        case tombstone
        /// No entry, because another device has seen it and no longer holds it. The record is kept for its generation.
        case dropped

        var value: Value? {
            if case .value(let value, _) = self { value } else { nil }
        }

        /// The size as counted against the limits; `nil` if nothing counts, not even the key.
        var size: Int? {
            if case .value(_, let size) = self { size } else { nil }
        }

        var isHidden: Bool {
            if case .hidden = self { true } else { false }
        }

        /// How many bytes it has that are not shown.
        var hiddenBytes: Int {
            if case .hidden(let bytes) = self { bytes.count } else { 0 }
        }
    }

    var value: Value? { content.value }

    var size: Int { content.size ?? 0 }

    /// Whether this is an entry with a value, shown or not.
    var holdsBytes: Bool {
        switch content {
        case .value, .hidden: true
        case .tombstone, .dropped: false
        }
    }

    /// Whether there is no entry any more.
    var isDropped: Bool {
        if case .dropped = content { true } else { false }
    }

    /// The entry as devices exchange it; `nil` if there is none.
    var entry: Entry? {
        switch content {
        case .value(let value, _): Entry(stamp: stamp, n: n, value: value.encoded())
        case .hidden(let bytes): Rule.passOn.isOn ? Entry(stamp: stamp, n: n, value: bytes) : nil
        case .tombstone: Entry(stamp: stamp, n: n, value: nil)
        case .dropped: nil
        }
    }
}

extension Record.Content {
    /// Decides what bytes from the database or a remote are to this device.
    init(encoded: [UInt8]?, key: Key, limits: Limits) {
        guard let encoded else {
            self = .tombstone
            return
        }
        if key.violation(limit: limits.keyLength) == nil, let (value, size) = try? Value.decode(encoded, limits: limits)
        {
            self = .value(value, size: size)
        } else {
            self = .hidden(encoded)
        }
    }
}

/// What a store holds, as counted against its limits.
package struct Usage: Equatable, Sendable {
    /// The number of keys with a visible value.
    package var keys = 0
    /// The sum of these values' sizes.
    package var bytes = 0
    /// The number of entries that break the rules for keys or values. They are not shown, and don't count.
    var hidden = 0

    mutating func replace(_ old: Record.Content?, by new: Record.Content?) {
        if let size = old?.size { keys -= 1; bytes -= size }
        if let size = new?.size { keys += 1; bytes += size }
        if old?.isHidden == true { hidden -= 1 }
        if new?.isHidden == true { hidden += 1 }
    }
}
