// SPDX-License-Identifier: Apache-2.0

// An attacker who holds the remotes of encrypted accounts, and keeps everything that was ever in them. Such an attacker
// can plant old blobs, altered ones and new ones, and has keys, but none of the accounts'.

internal import BackendTesting
internal import Blobs
internal import Crypto
internal import PropertyList
internal import Replication
internal import Sealing

/// One attack.
enum Attack: String, CaseIterable, Sendable {
    /// Plants a former blob with one bit flipped.
    case flip
    /// Plants the beginning of a blob.
    case cut
    /// Plants a head under another device's name, with or without that device's origin in it.
    case rename
    /// Plants a former blob, under its own name or another one.
    case replay
    /// Plants a blob of another account.
    case foreign
    /// Plants heads and segments: unencrypted, under the attacker's own key, and under one with the account's
    /// identifier.
    case plant
    /// Plants an unencrypted marker, and one of an encrypted account.
    case marker
    /// Plants a link which says that the attacker's key has replaced the account's.
    case link
    /// Replaces the account's marker by an unencrypted one.
    case unmark
}

/// The attacker of one run.
final class Attacker {
    /// The keys whose markers were planted.
    private(set) var identifiers: Set<KeyIdentifier> = []
    /// The origins of forged heads.
    private(set) var origins: Set<Origin> = []
    /// Called with each blob that was altered after it was sealed.
    var onAlteration: (_ bytes: [UInt8], _ place: Int) -> Void = { _, _ in }
    private let places: [Place<[UInt8]>]
    private let keys: [KeyIdentifier]
    private let names: Names
    /// Whether attacks replace nothing, because no rule can restore what both the remote and a device have lost.
    private let onlyAdds: Bool
    private let executor: SeededExecutor
    private var chance: Chance
    private var history: [[(name: String, bytes: [UInt8])]]
    private var forgeries: [Int: [(name: String, bytes: [UInt8])]] = [:]

    init(
        seed: UInt64, places: [Place<[UInt8]>], keys: [KeyIdentifier], names: Names, onlyAdds: Bool,
        executor: SeededExecutor
    ) {
        (self.places, self.keys, self.names, self.onlyAdds) = (places, keys, names, onlyAdds)
        self.executor = executor
        chance = Chance(seed: seed, stream: 6)
        history = places.map { _ in [] }
    }

    /// Records what a device has sent.
    func note(_ name: String, _ bytes: [UInt8], to place: Int) { history[place].append((name, bytes)) }

    /// Carries out an attack.
    func perform(_ attack: Attack, at place: Int) {
        switch attack {
        case .flip:
            guard let (name, sent) = blob(of: place), !sent.isEmpty else { return }
            var bytes = sent
            bytes[chance.below(bytes.count)] ^= 1 << UInt8(chance.below(8))
            onAlteration(bytes, place)
            put(name, bytes, at: place)
        case .cut:
            guard let (name, bytes) = blob(of: place) else { return }
            let part = Array(bytes.prefix(chance.below(bytes.count)))
            onAlteration(part, place)
            put(name, part, at: place)
        case .rename:
            guard let (_, bytes) = blob(of: place, in: "h/"), let (name, _) = blob(of: place, in: "h/") else { return }
            let renamed = Self.head(bytes, named: name)
            if renamed != bytes { onAlteration(renamed, place) }
            put(name, chance.happens(0.5) ? bytes : renamed, at: place)
        case .replay:
            guard let (name, bytes) = blob(of: place), let (other, _) = blob(of: place) else { return }
            put(chance.happens(0.7) ? name : other, bytes, at: place)
        case .foreign:
            guard let (name, bytes) = blob(of: (place + 1) % places.count) else { return }
            put(name, bytes, at: place)
        case .plant: for (name, bytes) in forgery(of: place) { places[place].plant(name, bytes) }
        case .marker: plantMarkers(at: place)
        case .link: plantLink(at: place)
        case .unmark where onlyAdds: break
        case .unmark: places[place].plant("a/\(keys[place])", plainMarker(keys[place]))
        }
    }

    /// Restores the account's marker, which its owner has elsewhere.
    func end(_ marker: SealedMarker, at place: Int) { places[place].plant("a/\(marker.identifier)", marker.bytes) }

    // MARK: Old blobs

    private func blob(of place: Int, in folder: String = "") -> (name: String, bytes: [UInt8])? {
        let known = history[place].filter { $0.name.hasPrefix(folder) }
        return known.isEmpty ? nil : chance.one(of: known)
    }

    /// Plants a blob under this name or a similar unused one; always the latter if nothing may be lost.
    private func put(_ name: String, _ bytes: [UInt8], at place: Int) {
        if !onlyAdds, chance.happens(0.7) { return places[place].plant(name, bytes) }
        let digits = name.hasPrefix("h/") && chance.happens(0.5) ? 16 : 32
        let random = "\(KeyIdentifier(high: chance.next(), low: chance.next()))".prefix(digits)
        let isCopy = name.hasPrefix("h/") && digits == 32
        places[place].plant(isCopy ? "\(name).sync-conflict-\(random)" : "\(name.prefix(2))\(random)", bytes)
    }

    /// A head with the origin of the device whose name it gets, and a digest that matches.
    private static func head(_ bytes: [UInt8], named name: String) -> [UInt8] {
        guard let origin = Origin(name.dropFirst(2)), bytes.count > 62 else { return bytes }
        let content = bytes.prefix(22) + bigEndian(origin.bits) + bytes.dropFirst(30).dropLast(32)
        return content + Array(SHA256.hash(data: content))
    }

    private static func bigEndian(_ bits: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: bits >> (56 - 8 * $0)) }
    }

    // MARK: Forgeries

    /// A key with an account's identifier, but another secret.
    private func impostor(_ identifier: KeyIdentifier) -> HeldKey? {
        let secret = (0..<AccountKey.secretBytes).map { _ in UInt8(truncatingIfNeeded: chance.next()) }
        return AccountKey(secret: secret, identifier: identifier).map {
            HeldKey(key: $0, marker: SealedMarker(of: $0, time: Timeline.start, links: []))
        }
    }

    private func ownKey() -> HeldKey {
        let isLess = chance.happens(0.5)
        var bits = [isLess ? 0 : .max, chance.next(), chance.next(), chance.next()].makeIterator()
        return HeldKey(time: Timeline.start) { bits.next() ?? 0 }
    }

    /// What devices would publish that have values nobody wrote: unencrypted, under another key, and under one that
    /// only seems to be the account's.
    private func forgery(of place: Int) -> [(name: String, bytes: [UInt8])] {
        if let forgery = forgeries[place] { return forgery }
        let storages = (0..<3).map { _ in MemoryStorage() }
        let protections = [Protection.none, .key(ownKey()), impostor(keys[place]).map(Protection.key) ?? .locked]
        for (storage, protection) in zip(storages, protections) { forge(storage, protection, of: place) }
        // Markers are planted by other attacks.
        let forgery = storages.flatMap { $0.blobs.sorted { $0.key < $1.key } }.filter { !$0.key.hasPrefix("a/") }
        forgeries[place] = forgery.map { ($0.key, $0.value) }
        return forgeries[place] ?? []
    }

    private func forge(_ storage: MemoryStorage, _ protection: Protection, of place: Int) {
        let backend = backend(storage, protection)
        let device = BackendDevice("Forger", seed: chance.next(), backend: backend)
        device.time = Timeline.start + 30 * day
        for store in Names.stores {
            for (index, key) in names.keys.prefix(12).enumerated() {
                device.set(store, key.string, names.value(of: Int64(1_000_000_000 + index)))
            }
            device.set(store, "large", .data([UInt8](repeating: 1, count: 5000)))
        }
        origins.insert(device.origin)
        let account = protection.held?.key.identifier ?? keys[place]
        nonisolated(unsafe) let forger = device
        // Safe because everything happens on one thread.
        executor.start {
            _ = try? await backend.restore("\(account)")
            try? await forger.signIn(creating: false)
            _ = try? await forger.sync()
        }
        executor.drain()
    }

    private func backend(_ storage: MemoryStorage, _ protection: Protection) -> BlobBackend<MemoryStorage> {
        let environment = Environment(time: { Timeline.start + 30 * day }, random: { 7 })
        return BlobBackend(
            storage: storage, environment: environment, executor: executor.serial, protection: protection)
    }

    /// The marker of an unencrypted account.
    private func plainMarker(_ identifier: KeyIdentifier) -> [UInt8] {
        let storage = MemoryStorage()
        let backend = backend(storage, .none)
        executor.start { _ = try? await backend.restore("\(identifier)") }
        executor.drain()
        return storage.blobs["a/\(identifier)"] ?? []
    }

    private func plantMarkers(at place: Int) {
        let plain = KeyIdentifier(high: chance.next(), low: chance.next())
        places[place].plant("a/\(plain)", plainMarker(plain))
        let own = ownKey()
        identifiers.insert(own.key.identifier)
        places[place].plant("a/\(own.key.identifier)", own.marker.bytes)
    }

    private func plantLink(at place: Int) {
        guard let impostor = impostor(keys[place]) else { return }
        let own = HeldKey(replacing: impostor, time: Timeline.start) { [self] in chance.next() }
        identifiers.insert(own.key.identifier)
        places[place].plant("a/\(own.key.identifier)", own.marker.bytes)
        for link in own.marker.links { places[place].plant("a/\(link.noteName)", link.note()) }
    }
}
