// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
package import PropertyList
package import UbiquitousStore

/// Calls that read and change stores.
extension PanelService {
    /// Returns a store's values.
    package func values(of store: String) async throws -> [Text: Value] {
        try await connection().store(store).snapshot().values
    }

    /// Returns the earlier values of a key.
    package func history(of key: Text, in store: String) async throws -> [HistoryEntry] {
        try await connection().store(store).history(key.string)
    }

    /// Sets a key's value.
    ///
    /// - Parameter value: the new value; `nil` to remove the key.
    /// - Returns: the former value, to undo the change.
    package func put(_ value: Value?, as key: Text, in store: String) async throws -> Value? {
        let store = try await connection().store(store)
        let before = try await store.value(key.string)
        try await store.apply([key: value])
        return before
    }

    /// Makes this device forget a store, or removes it from every device of the account.
    /// - Throws: ``ChangesAreUnsaved`` if changes would be lost.
    package func remove(_ store: String, everywhere: Bool) async throws {
        let connection = try await connection()
        if !everywhere {
            let account = try await connection.account().uploadPendingChanges(timeout: Self.patience)
            if account.isSignedIn, account.pendingChanges > 0 || account.mayLackChanges {
                throw ChangesAreUnsaved(isAccountGone: account.mayLackChanges)
            }
        }
        try await connection.manager.removeStore(store, everywhere: everywhere, keepingPending: !everywhere)
    }

    /// The account does not have all changes of this device, so a store that this device forgot might not come back as
    /// it was.
    package struct ChangesAreUnsaved: Error, CustomStringConvertible {
        /// Whether the remote isn't the account to which this device has uploaded.
        let isAccountGone: Bool

        package var description: String {
            isAccountGone
                ? tr("The account may lack settings of this device. The page of the account says what to do.")
                : tr("The account does not have all changes of this device yet. Sync first, or resume sync.")
        }
    }
}
