// SPDX-License-Identifier: Apache-2.0

/// A call or a signal that waits until there is room for what it sends.
struct WaitingWork {
    /// About how many bytes it sends.
    let bytes: Int
    /// Whether it waits while its user's calls rest.
    let takesLong: Bool
    /// What a call holds while it waits; `nil` for a signal.
    let held: HeldSize?
    var kind = Kind.call
    let work: () -> Void

    enum Kind {
        case call
        /// A call whose caller expects no reply.
        case unansweredCall
        case signal(of: AnyObject)
    }

    var isCall: Bool { if case .call = kind { true } else { false } }
    var isUnansweredCall: Bool { if case .unansweredCall = kind { true } else { false } }

    func isSignal(of subscription: AnyObject) -> Bool {
        if case .signal(let own) = kind { own === subscription } else { false }
    }
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
        guard let index = entries[start...].firstIndex(where: { $0?.isSignal(of: subscription) == true }) else {
            return
        }
        entries.remove(at: index)
    }
}
