// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication

/// A change that isn't its key's last.
struct FormerChange {
    let replica: Int64
    let sequence: UInt64
    /// When the key's next change was made, in microseconds since 1970.
    let replaced: UInt64
    /// The size of the value's encoding, in bytes.
    let length: Int

    init(_ change: ChangeReader.Outline, of replica: Int64, replaced: UInt64) {
        self.replica = replica
        self.replaced = replaced
        (sequence, length) = (change.sequence, change.length ?? 0)
    }

    /// The approximate size in the database, in bytes. A row that does not fit into a page has pages of its own.
    var bytes: Int { length < 1900 ? length + Self.overhead : (length / 2044 + 1) * 2048 }

    /// The approximate size of a row without its value, in bytes.
    static let overhead = 100
}

/// Collects the changes that were replaced first, up to a total size. It holds at most about twice as much.
struct OldestChanges {
    private let wanted: Int
    private var changes: [FormerChange] = []
    private var sum = 0
    private var total = 0
    /// The time from which on replaced changes are not collected.
    private var end = UInt64.max

    init(bytes: Int) {
        wanted = max(1, bytes)
    }

    mutating func add(_ change: FormerChange) {
        total += change.bytes
        guard change.replaced < end else { return }
        changes.append(change)
        sum += change.bytes
        if sum / 2 > wanted { keepOldest() }
    }

    private mutating func keepOldest() {
        changes.sort { ($0.replaced, $0.replica, $0.sequence) < ($1.replaced, $1.replica, $1.sequence) }
        var (count, kept) = (0, 0)
        while count < changes.count, kept < wanted {
            kept += changes[count].bytes
            count += 1
        }
        sum = kept
        guard count < changes.count else { return }
        changes.removeSubrange(count...)
        end = changes[count - 1].replaced
    }

    /// Returns the collected changes by replica.
    mutating func byReplica() -> [Int64: [FormerChange]] {
        keepOldest()
        return Dictionary(grouping: changes, by: \.replica)
    }

    /// The size of the changes that were not collected.
    var bytesLeft: Int { total - changes.reduce(0) { $0 + $1.bytes } }
}
