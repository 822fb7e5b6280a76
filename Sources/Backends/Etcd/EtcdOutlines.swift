// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication

/// What a store has in the cluster, without its entries.
struct EtcdOutline: Equatable {
    var vector: VersionVector
    var keys: Set<Key>

    init(of state: StoreState) { (vector, keys) = (state.vector, Set(state.entries.keys)) }

    /// Takes in what has changed.
    mutating func take(_ delta: Self) {
        vector = delta.vector
        keys.formUnion(delta.keys)
    }

    /// About how many bytes it takes in memory.
    var size: Int { keys.reduce(128) { $0 + 64 + $1.string.utf8.count } + vector.dots.count * 64 }
}

/// What stores have in the cluster, as far as there is room: whoever writes to it decides how many there are. A store
/// without an outline is read again before something of it is published.
struct EtcdOutlines {
    private(set) var byStore: [String: EtcdOutline] = [:]
    private var sizes: [String: Int] = [:]
    private var bytes = 0

    /// Of some 30,000 keys.
    static let mostBytes = 4 << 20

    /// Remembers an outline, or forgets the one that there was: where there is no room for it, too.
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
