// SPDX-License-Identifier: Apache-2.0

// A store as DefaultsDomains uses it: the roaming keys of UserDefaults are kept in it.

internal import Foundation
package import PropertyList
internal import SDBus
internal import StoreBus

/// A store's copy in this process, which ``NSUbiquitousKeyValueStore`` shares.
package final class StoreMirror: Sendable {
    /// The store's identifier.
    package let identifier: String
    private let store: SharedStore

    /// Changes that this process didn't make, or a refused write.
    package struct Event: Sendable {
        /// A reason of the D-Bus interface.
        package let reason: UInt32
        /// The keys, sorted.
        package let keys: [Text]
        /// Why a write was refused and reverted; `nil` if none was.
        package let error: UbiquitousStoreError?
    }

    /// Makes the copy of a store.
    ///
    /// - Parameter bus: `system`, `session` or an address.
    package init(identifier: String, bus: String) {
        self.identifier = identifier
        store = StorePlace(identifier: identifier, bus: bus).store
    }

    // MARK: Reading

    /// The values in the copy; none before the service's first answer.
    package var values: [Text: Value] { store.presentValues }

    /// Whether the service's values have arrived.
    package var isLoaded: Bool { store.hasSnapshot }

    /// Waits until the service's values have arrived, for a number of seconds at most.
    package func awaitValues(atMost seconds: Double) { store.awaitFirstSnapshot(atMost: seconds) }

    /// Brings the copy up to date, if the service can be reached.
    package func refresh() async { try? await store.refresh() }

    // MARK: Writing

    /// Changes the copy at once, and the service soon.
    ///
    /// - Throws: ``UbiquitousStoreError`` for what no store can hold; nothing changes then.
    package func write(_ changes: [Text: Value?]) throws { try store.write(changes) }

    /// Changes the copy at once, and returns when the service has applied the changes.
    ///
    /// - Throws: ``UbiquitousStoreError`` if they are refused.
    package func writeAndWait(_ changes: [Text: Value?]) async throws { try await store.writeAndWait(changes) }

    /// The changes that the service has not acknowledged, those of them that were sent, and the generation that was known
    /// when each key was written.
    package var pending: (changes: [Text: Value?], unanswered: [Text: Value?], known: [Text: UInt64]) {
        let (changes, unanswered, known) = store.pending
        return (changes, unanswered, known)
    }

    /// Returns when the service has replied to every write.
    package func settle() async { try? await store.settle() }

    // MARK: Following

    /// Until the store is released, calls `changed` on the thread of each change of the copy, with the keys that this
    /// process wrote, or `nil` after an event from the service; and `announced` on the store's serial queue.
    package func follow(
        changed: @escaping @Sendable (_ written: [Text]?) -> Void, announced: @escaping @Sendable (Event) -> Void
    ) {
        store.watch(changed)
        _ = store.observe {
            announced(Event(reason: $0.reason, keys: $0.changes.map(\.key), error: $0.error))
        }
    }

    /// Returns whether the user is signed out; `nil` if the service doesn't answer.
    package func isSignedOut() async -> Bool? {
        await EventLoop.task { [store] in
            guard let account = try? await store.object().connection.account().properties() else { return nil }
            return !account.isSignedIn
        }.value
    }
}
