// SPDX-License-Identifier: Apache-2.0

package import Foundation
internal import Synchronization

/// Closures of an app that are called with events.
package final class Observers<Event>: Sendable {
    package typealias Action = @Sendable (Event) -> Void

    private let actions = Mutex<[UUID: Action]>([:])

    package init() {}

    /// Whether nobody observes.
    package var isEmpty: Bool { actions.withLock(\.isEmpty) }

    /// Adds an observer, until ``remove(_:)``.
    package func add(_ action: @escaping Action) -> UUID {
        let observer = UUID()
        actions.withLock { $0[observer] = action }
        return observer
    }

    package func remove(_ observer: UUID) {
        // Outside of the lock, because what the closure holds may call the observed object as it goes.
        let action = actions.withLock { $0.removeValue(forKey: observer) }
        withExtendedLifetime(action) {}
    }

    /// Calls all observers, one after the other, outside of the lock.
    package func tell(_ event: Event) {
        for observer in actions.withLock({ Array($0.keys) }) {
            // An observer that was called before may have removed this one.
            actions.withLock { $0[observer] }?(event)
        }
    }
}
