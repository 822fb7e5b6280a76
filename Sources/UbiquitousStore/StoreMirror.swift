// SPDX-License-Identifier: Apache-2.0

// A store as the library of settings uses it: keys of UserDefaults that roam live in it.

internal import Foundation
package import PropertyList
internal import SDBus

/// A store's copy in this process, which ``NSUbiquitousKeyValueStore`` shares.
package final class StoreMirror: Sendable {
    /// The store's identifier.
    package let identifier: String
    private let store: SharedStore

    /// Changes that this process didn't make, or a write that was refused.
    package struct Event: Sendable {
        /// A reason of the D-Bus interface.
        package let reason: UInt32
        /// The keys, sorted.
        package let keys: [Text]
        /// Why a write was refused, and taken back.
        package let error: UbiquitousStoreError?
    }

    /// The copy of a store.
    ///
    /// - Parameter bus: `system`, `session` or an address.
    package init(identifier: String, bus: String) {
        self.identifier = identifier
        store = StorePlace(identifier: identifier, bus: bus).store
    }

    // MARK: Reading

    /// The values, as they are here; what is waited for is absent.
    package var values: [Text: Value] { store.presentValues }

    /// Whether the service has answered once.
    package var isLoaded: Bool { store.hasSnapshot }

    /// Waits until the values are here, for half a second at most.
    package func awaitValues() { _ = store.values }

    /// Takes in what the service has by now.
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

    /// What the service has not acknowledged, what of it was sent, and the generation that was known.
    package var pending: (changes: [Text: Value?], unanswered: [Text: Value?], known: UInt64) {
        let (changes, unanswered, known) = store.pending
        return (changes, unanswered, known)
    }

    /// Returns when the service has replied to every write.
    package func settle() async { try? await store.settle() }

    // MARK: Following

    /// Calls `changed` on the thread of each change of the copy: with the keys that this process wrote, or with `nil`.
    /// Calls `announced` on the store's serial queue with what observers are told. Both last as long as the store.
    package func follow(
        changed: @escaping @Sendable (_ written: [Text]?) -> Void, announced: @escaping @Sendable (Event) -> Void
    ) {
        store.watch(changed)
        _ = store.observe {
            announced(Event(reason: $0.reason, keys: $0.changes.map(\.key), error: $0.error))
        }
    }

    /// Whether nobody has signed in; `nil` if the service doesn't say.
    package func isSignedOut() async -> Bool? {
        await EventLoop.task { [store] in
            guard let account = try? await store.object().connection.account().properties() else { return nil }
            return account.state == UbiquitousStore.AccountState.Status.signedOut.rawValue
        }.value
    }
}
