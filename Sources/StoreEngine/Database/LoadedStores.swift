// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

/// The stores of a database that are in memory, by the bytes of their identifiers, as the database compares them.
///
/// The references are not weak: that would slow down every use of a store. A store removes itself when it is freed.
struct LoadedStores {
    private var stores: [Text: Unmanaged<Store>] = [:]

    /// The stores in memory, in no order.
    var all: [Store] { stores.values.map { $0.takeUnretainedValue() } }

    subscript(identifier: String) -> Store? { stores[Text(identifier)]?.takeUnretainedValue() }

    mutating func add(_ store: Store) {
        stores[Text(store.identifier)] = Unmanaged.passUnretained(store)
    }

    /// Removes a store, unless it was only read to update another object with the same identifier.
    /// - Returns: whether it was removed.
    mutating func remove(_ store: Store) -> Bool {
        guard stores[Text(store.identifier)]?.toOpaque() == Unmanaged.passUnretained(store).toOpaque() else {
            return false
        }
        stores[Text(store.identifier)] = nil
        return true
    }
}
