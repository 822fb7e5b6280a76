// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication

/// A store's state in the cluster, without its entries.
struct EtcdOutline: Equatable {
    var vector: VersionVector
    var keys: Set<Key>

    init(of state: StoreState) { (vector, keys) = (state.vector, Set(state.entries.keys)) }

    /// Applies a delta's outline.
    mutating func take(_ delta: Self) {
        vector = delta.vector
        keys.formUnion(delta.keys)
    }

    /// About how many bytes the outline takes in memory.
    var size: Int { keys.reduce(128) { $0 + 64 + $1.string.utf8.count } + vector.dots.count * 64 }
}

/// The stores' states in the cluster, as far as there is room: anyone who can write to it decides how large they are.
/// A store without an outline is read again before a device publishes to it.
struct EtcdOutlines {
    private(set) var byStore: [String: EtcdOutline] = [:]
    private var sizes: [String: Int] = [:]
    private var bytes = 0

    /// Enough for some 30,000 keys.
    static let mostBytes = 4 << 20

    /// The outline of a store. Setting it removes the former one, and stores the new one if there is room.
    subscript(store: String) -> EtcdOutline? {
        get { byStore[store] }
        set {
            bytes -= sizes.removeValue(forKey: store) ?? 0
            byStore[store] = nil
            guard let newValue, bytes + newValue.size <= Self.mostBytes else { return }
            byStore[store] = newValue
            sizes[store] = newValue.size
            bytes += newValue.size
        }
    }
}
