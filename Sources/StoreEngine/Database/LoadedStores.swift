// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

/// The stores of a database that are in memory, by the bytes of their identifiers, as the database knows them.
///
/// The references are not weak ones, which make every use of an object slower. A store takes itself out when it goes.
struct LoadedStores {
    private var stores: [Text: Unmanaged<Store>] = [:]

    /// Every store that is in memory, in no order.
    var all: [Store] { stores.values.map { $0.takeUnretainedValue() } }

    subscript(identifier: String) -> Store? { stores[Text(identifier)]?.takeUnretainedValue() }

    mutating func add(_ store: Store) {
        stores[Text(store.identifier)] = Unmanaged.passUnretained(store)
    }

    /// Takes a store out; it may be one that was only read anew for another one of the same identifier.
    mutating func remove(_ store: Store) {
        if stores[Text(store.identifier)]?.toOpaque() == Unmanaged.passUnretained(store).toOpaque() {
            stores[Text(store.identifier)] = nil
        }
    }
}
