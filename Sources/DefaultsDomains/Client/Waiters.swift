// SPDX-License-Identifier: Apache-2.0

/// Who waits for writes, by ticket.
struct Waiters: Sendable {
    /// Called once the service has the write, or with why it has not.
    typealias Action = @Sendable ((any Error)?) -> Void

    private var actions: [Ticket: Action] = [:]
    private var last: Ticket = 0

    /// - Returns: the ticket of one who waits from now on.
    mutating func add(_ action: @escaping Action) -> Ticket {
        last += 1
        actions[last] = action
        return last
    }

    /// One who has waited long enough.
    mutating func remove(_ ticket: Ticket) -> Action? { actions.removeValue(forKey: ticket) }
}
