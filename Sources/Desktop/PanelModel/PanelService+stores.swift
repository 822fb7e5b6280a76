// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
package import PropertyList
package import UbiquitousStore

/// Stores, looked into.
extension PanelService {
    /// What a store holds.
    package func values(of store: String) async throws -> [Text: Value] {
        try await connection().store(store).snapshot().values
    }

    /// The earlier values of a key.
    package func history(of key: Text, in store: String) async throws -> [HistoryEntry] {
        try await connection().store(store).history(key.string)
    }

    /// Makes a value a key's.
    ///
    /// - Parameter value: `nil` removes it.
    /// - Returns: what it was before, to undo.
    package func put(_ value: Value?, as key: Text, in store: String) async throws -> Value? {
        let store = try await connection().store(store)
        let before = try await store.value(key.string)
        try await store.apply([key: value])
        return before
    }

    /// Has this device forget a store, or every device of the account.
    package func remove(_ store: String, everywhere: Bool) async throws {
        try await connection().manager.removeStore(store, everywhere: everywhere)
    }
}
