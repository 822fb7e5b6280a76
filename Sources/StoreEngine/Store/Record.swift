// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication

/// What brought a change into a replica.
public enum Cause: Int64, Sendable {
    /// A write on this device.
    case written = 0
    /// Another device's change, joined.
    case joined = 1
    /// The first download of the account's values.
    case downloaded = 2
    /// It came along when the account changed.
    case carried = 3
    /// The entry went, because another device has seen it and no longer holds it.
    case dropped = 4

    /// Whether the change was made here, so that the remote does not have it until it is published.
    var isOwn: Bool { self == .written || self == .carried }
    /// The same of a row, in SQL.
    static let isOwn = "cause IN (\(written.rawValue), \(carried.rawValue))"
}

/// An entry as it is held in memory.
struct Record: Sendable {
    var stamp: Stamp
    var n: UInt64
    var content: Content
    /// The store's generation in which the key's visible value changed last.
    var generation: UInt64
    /// Its row among the replica's changes.
    var sequence: UInt64
    var cause: Cause
    /// The rows that are the key's history, oldest first; no more than are kept.
    var former: [UInt64] = []

    enum Content: Sendable {
        /// A value that may be shown, and what it counts against the limits.
        case value(Value, size: Int)
        /// Bytes that are no value that may be shown; passed on as they came.
        case hidden([UInt8])
        case tombstone
        /// No entry any more: another device has seen it and no longer holds it. Kept for its generation.
        case dropped

        var value: Value? {
            if case .value(let value, _) = self { value } else { nil }
        }

        /// What it counts against the limits; `nil` if that is nothing, not even a key.
        var size: Int? {
            if case .value(_, let size) = self { size } else { nil }
        }

        var isHidden: Bool {
            if case .hidden = self { true } else { false }
        }
    }

    var value: Value? { content.value }

    var size: Int { content.size ?? 0 }

    /// Whether there is no entry any more.
    var isDropped: Bool {
        if case .dropped = content { true } else { false }
    }

    /// The same as it travels; `nil` where there is no entry.
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
    /// What bytes that came from the database or a remote are to this device.
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

/// What counts against a store's limits.
public struct Usage: Equatable, Sendable {
    /// Keys with a visible value.
    public var keys = 0
    /// The sizes of these values.
    public var bytes = 0
    /// Entries that count nothing: they break the rules for keys and values, and are shown to nobody.
    var hidden = 0

    mutating func replace(_ old: Record.Content?, by new: Record.Content?) {
        if let size = old?.size { keys -= 1; bytes -= size }
        if let size = new?.size { keys += 1; bytes += size }
        if old?.isHidden == true { hidden -= 1 }
        if new?.isHidden == true { hidden += 1 }
    }
}
