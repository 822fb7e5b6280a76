// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization

/// The store behind ``NSUbiquitousKeyValueStore/default``, determined at its first use.
final class DefaultStore: Sendable {
    static let shared = DefaultStore()

    private struct State {
        var identifier: String?
        var bus: String?
        var place: StorePlace?
        var object: NSUbiquitousKeyValueStore?
    }

    private let state = Mutex(State())

    /// The store's bus and identifier.
    var place: StorePlace {
        state.withLock { Self.place(&$0) }
    }

    /// The store's object.
    var object: NSUbiquitousKeyValueStore {
        state.withLock { state in
            if let object = state.object { return object }
            let object = NSUbiquitousKeyValueStore(Self.place(&state))
            state.object = object
            return object
        }
    }

    /// Sets the store's identifier and bus, unless it is already in use.
    func use(identifier: String?, bus: String?) -> Bool {
        state.withLock { state in
            guard state.place == nil else { return false }
            (state.identifier, state.bus) = (identifier, bus)
            return true
        }
    }

    private static func place(_ state: inout State) -> StorePlace {
        if let place = state.place { return place }
        let place = StorePlace(identifier: state.identifier, bus: state.bus)
        state.place = place
        return place
    }
}
