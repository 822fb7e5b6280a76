// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import SDBus
internal import StoreEngine

/// The sizes of the layers of a user's domains, so that a write need neither load nor list them.
@BusActor
final class LayerSizes {
    private unowned let user: User
    private let writes: WriteQueue
    /// The layers that hold a value, with their bytes where these are known; `nil` if they have not been listed yet.
    private var layers: [Text: Int?]?

    /// - Parameter writes: committed before the layers are listed.
    init(of user: User, writes: WriteQueue) {
        self.user = user
        self.writes = writes
    }

    /// The domains that hold a value.
    var domains: Set<Text> {
        get throws { Set(try listed().keys.compactMap { DomainLayer($0.string).map { Text($0.domain) } }) }
    }

    /// Returns how many bytes domains hold, in both layers.
    func bytes(of domains: Set<Text>) throws -> Int {
        let identifiers = domains.flatMap { domain in
            [false, true].map { DomainLayer(of: domain.string, isHost: $0).identifier }
        }
        return try identifiers.reduce(0) { $0 + (try bytes(of: $1)) }
    }

    private func bytes(of identifier: String) throws -> Int {
        guard let known = try listed()[Text(identifier)] else { return 0 }
        if let known { return known }
        let used = user.storeInUse(identifier)?.store.usage.bytes
        let bytes = try used ?? user.recovery.retrying { try user.database.valueBytes(ofLayer: identifier) }
        layers?[Text(identifier)] = bytes
        return bytes
    }

    /// Notes a staged change of a layer.
    func note(_ layer: Store) {
        layers?.updateValue(layer.usage.bytes, forKey: Text(layer.identifier))
        if layer.usage.keys == 0 { layers?[Text(layer.identifier)] = nil }
    }

    /// Forgets all sizes, because a commit failed and they may be wrong.
    func forget() {
        layers = nil
    }

    private func listed() throws -> [Text: Int?] {
        if let layers { return layers }
        writes.commit()
        let identifiers = try user.recovery.retrying { try user.database.summaries.storesWithValues() }.filter {
            DomainLayer($0) != nil
        }
        let listed = Dictionary(identifiers.map { (Text($0), Int?.none) }, uniquingKeysWith: { $1 })
        layers = listed
        return listed
    }
}
