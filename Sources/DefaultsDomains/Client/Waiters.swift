// SPDX-License-Identifier: Apache-2.0

/// The callbacks of callers that wait for writes, by ticket.
struct Waiters: Sendable {
    /// Called once the service has the write, or with the reason why it has not.
    typealias Action = @Sendable ((any Error)?) -> Void

    private var actions: [Ticket: Action] = [:]
    private var last: Ticket = 0

    /// - Returns: the ticket of the new action.
    mutating func add(_ action: @escaping Action) -> Ticket {
        last += 1
        actions[last] = action
        return last
    }

    /// Removes an action, and returns it; `nil` if it is gone already.
    mutating func remove(_ ticket: Ticket) -> Action? { actions.removeValue(forKey: ticket) }
}
