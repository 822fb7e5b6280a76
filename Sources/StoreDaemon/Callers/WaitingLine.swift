// SPDX-License-Identifier: Apache-2.0

/// A call or a signal that waits until there is room for what it sends.
struct WaitingWork {
    /// About how many bytes it sends.
    let bytes: Int
    /// Whether it waits while its user's calls rest.
    let takesLong: Bool
    /// What a call holds while it waits; `nil` for a signal.
    let held: HeldSize?
    /// Whether it is a call whose caller expects a reply.
    var isAnswered = true
    /// The subscription whose signal it is.
    var subscription: AnyObject?
    let work: () -> Void

    /// Whether it is a call whose caller expects no reply.
    var isUnanswered: Bool { !isAnswered && subscription == nil }
}

/// What waits for a client, in its order.
struct WaitingLine {
    // Removed at the front without moving the rest: thousands of calls may wait.
    private var entries: [WaitingWork?] = []
    private var start = 0

    var isEmpty: Bool { start == entries.count }

    var first: WaitingWork? { isEmpty ? nil : entries[start] }

    /// - Parameter isNext: whether it comes before everything else.
    mutating func add(_ work: WaitingWork, isNext: Bool) {
        guard isNext else { return entries.append(work) }
        if start == 0 { return entries.insert(work, at: 0) }
        start -= 1
        entries[start] = work
    }

    mutating func removeFirst() -> WaitingWork? {
        guard let first else { return nil }
        entries[start] = nil
        start += 1
        if start > entries.count / 2 {
            entries.removeSubrange(0..<start)
            start = 0
        }
        return first
    }

    /// Removes the signal of a subscription, if it waits.
    mutating func removeSignal(of subscription: AnyObject) {
        guard let index = entries[start...].firstIndex(where: { $0?.subscription === subscription }) else { return }
        entries.remove(at: index)
    }
}
