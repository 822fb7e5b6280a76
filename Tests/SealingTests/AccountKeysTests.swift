// SPDX-License-Identifier: Apache-2.0

import Foundation
import SeededRandom
import Testing

@testable import Sealing

/// Two to four devices in a folder that replicates each file separately. Any of them moves to a new key or unlocks at
/// any time. At the end, with all files and phrases everywhere, all must have one key and every value.
@Suite struct AccountKeysTests {
    /// The number of seeds to run; `ACCOUNT_KEY_SEEDS=60000` runs more, which takes a while.
    private static let seeds = ProcessInfo.processInfo.environment["ACCOUNT_KEY_SEEDS"].flatMap(UInt64.init) ?? 150

    @Test func `devices that move and unlock at any time end with one key and every value`() {
        for seed: UInt64 in 1...Self.seeds {
            var world = KeyWorld(seed: seed)
            let wrong = world.run()
            #expect(wrong == [], "seed \(seed)")
        }
    }

    @Test func `without links between the keys some do not`() {
        let broken = (1...UInt64(300)).first { seed in
            var world = KeyWorld(seed: seed, hasLinks: false)
            return !world.run().isEmpty
        }
        #expect(broken != nil)
    }
}

/// One run of the simulation.
struct KeyWorld {
    private struct Head {
        var key: KeyIdentifier?
        var values: Set<Int>
    }

    private enum File {
        case marker(SealedMarker)
        case plainMarker
        case note(KeyLink)
        case head(Head)
    }

    private struct Device {
        enum Stop: Equatable {
            case keyNeeded(KeyIdentifier)
            case reset
            case waiting
        }
        var values: Set<Int> = []
        var key: AccountKey?
        var plain: Set<String> = []
        var stop: Stop?
        var isSignedIn = false
        var wasEncrypted = false
        /// The key that the device is moving to.
        var next: AccountKey?
        var marker: SealedMarker?
        var former: Set<KeyIdentifier> = []
        var age = 0
    }

    private typealias Version = (number: Int, file: File?)
    /// Whether there are links. Runs without them must fail, to show that the simulation notices.
    private let hasLinks: Bool
    private var random: SplitMix
    private var devices: [Device]
    private var views: [[String: Version]]
    private var queues: [[(name: String, version: Version)]]
    private var writes = 0
    private var written: Set<Int> = []
    private var told: [KeyIdentifier: AccountKey] = [:]
    private var moved: [(from: KeyIdentifier?, to: KeyIdentifier)] = []
    private var wrong: Set<String> = []

    init(seed: UInt64, hasLinks: Bool = true) {
        self.hasLinks = hasLinks
        random = SplitMix(seed: seed)
        let count = Int.random(in: 2...4, using: &random)
        devices = [Device](repeating: Device(), count: count)
        views = [[String: Version]](repeating: [:], count: count)
        queues = [[(name: String, version: Version)]](repeating: [], count: count)
    }

    /// Runs, lets the devices recover, and returns what is wrong then.
    mutating func run() -> [String] {
        for _ in 0..<Int.random(in: 10...120, using: &random) {
            act(Int.random(in: devices.indices, using: &random))
        }
        for _ in 0..<80 {
            for device in devices.indices { deliver(device, all: true) }
            for device in devices.indices { heal(device) }
        }
        let keys = Set(devices.map(\.key?.identifier))
        if keys.count != 1 { wrong.insert("several keys") }
        if devices.contains(where: { $0.values != written }) { wrong.insert("values are missing") }
        if let key = devices[0].key?.identifier, moved.contains(where: { $0.from == key }) {
            wrong.insert("a replaced key")
        }
        if devices[0].key == nil, !moved.isEmpty { wrong.insert("unencrypted") }
        return wrong.sorted()
    }

    private mutating func act(_ d: Int) {
        switch Double.random(in: 0..<1, using: &random) {
        case ..<0.35: deliver(d, all: false)
        case ..<0.65: pass(d)
        case ..<0.85:
            writes += 1
            devices[d].values.insert(-writes)
            written.insert(-writes)
        case ..<0.93: begin(d)
        default:
            if case .keyNeeded(let key) = devices[d].stop, let key = told[key], random.next() % 2 == 0 {
                unlock(d, key)
            }
        }
    }

    private mutating func pass(_ d: Int) {
        devices[d].age += 1
        if devices[d].next != nil { return step(d) }
        look(d)
        guard devices[d].stop == nil else { return }
        join(d)
        if random.next() % 10 < 7 { publish(d) }
        clean(d)
    }

    private mutating func heal(_ d: Int) {
        devices[d].age += 5
        if devices[d].next != nil { return step(d) }
        look(d)
        switch devices[d].stop {
        case .keyNeeded(let key): if let key = told[key] { unlock(d, key) }
        case .reset:
            if let marker = devices[d].marker, devices[d].key != nil {
                put(d, "a/\(marker.identifier)", .marker(marker))
            } else if !devices[d].wasEncrypted, let plain = devices[d].plain.min() {
                put(d, plain, .plainMarker)
            }
        case .waiting: break
        case nil:
            join(d)
            publish(d)
            clean(d)
        }
    }

    // The folder

    private mutating func put(_ d: Int, _ name: String, _ file: File?) {
        writes += 1
        views[d][name] = (writes, file)
        for other in devices.indices where other != d { queues[other].append((name, (writes, file))) }
    }

    private mutating func delete(_ d: Int, _ name: String) {
        if views[d][name]?.file != nil { put(d, name, nil) }
    }

    private mutating func deliver(_ d: Int, all: Bool) {
        while !queues[d].isEmpty {
            let arrived = queues[d].remove(at: Int.random(in: queues[d].indices, using: &random))
            if views[d][arrived.name]?.number ?? 0 < arrived.version.number { views[d][arrived.name] = arrived.version }
            if !all { return }
        }
    }

    private func seen(_ d: Int) -> SeenMarkers {
        var seen = SeenMarkers()
        // In the order of their names, so that a seed repeats its run.
        for (_, version) in views[d].sorted(by: { $0.key < $1.key }) {
            switch version.file {
            case .marker(let marker): seen.sealed.append(marker)
            case .note(let link): seen.notes.append(link)
            default: break
            }
        }
        if !hasLinks { seen.notes = [] }
        return seen
    }

    private func heads(_ d: Int) -> [(name: String, head: Head)] {
        views[d].sorted { $0.key < $1.key }.compactMap { name, version in
            if case .head(let head) = version.file { (name, head) } else { nil }
        }
    }

    // The device

    private mutating func look(_ d: Int) {
        func plain() -> [String] {
            views[d].filter { if case .plainMarker = $0.value.file { true } else { false } }.keys.sorted()
        }
        if !devices[d].isSignedIn {
            if plain().isEmpty, seen(d).sealed.isEmpty { put(d, "a/plain\(random.next())", .plainMarker) }
            devices[d].isSignedIn = true
        }
        devices[d].plain.formUnion(plain())
        let seen = seen(d)
        // A head under a key has arrived before any sealed marker.
        if devices[d].key == nil, seen.sealed.isEmpty, heads(d).contains(where: { $0.head.key != nil }) {
            (devices[d].stop, devices[d].wasEncrypted) = (.waiting, true)
            return
        }
        let choice = MarkerChoice(among: seen, key: devices[d].key, wasEncrypted: devices[d].wasEncrypted)
        switch choice {
        case .plain: devices[d].stop = plain().isEmpty ? .reset : nil
        case .using: devices[d].stop = nil
        case .reset: devices[d].stop = .reset
        case .waiting: devices[d].stop = .waiting
        case .keyNeeded(let key):
            devices[d].stop = .keyNeeded(key)
            devices[d].wasEncrypted = true
        }
    }

    private mutating func join(_ d: Int) {
        for (_, head) in heads(d) where head.key == devices[d].key?.identifier {
            devices[d].values.formUnion(head.values)
        }
    }

    private mutating func publish(_ d: Int) {
        if devices[d].key == nil, devices[d].wasEncrypted { wrong.insert("published unencrypted") }
        put(d, "h/\(d)", .head(Head(key: devices[d].key?.identifier, values: devices[d].values)))
    }

    private mutating func begin(_ d: Int) {
        guard devices[d].isSignedIn, devices[d].next == nil else { return }
        look(d)
        guard devices[d].stop == nil else { return }
        join(d)
        let next = AccountKey { random.next() }
        devices[d].next = next
        let seen = seen(d)
        var links = seen.notes + seen.sealed.flatMap(\.links)
        let link = devices[d].key.map { KeyLink(from: $0, to: next.identifier, .replaced) }
        links = (link.map { [$0] } ?? []) + links
        let marker = SealedMarker(of: next, time: 0, links: hasLinks ? links : [])
        devices[d].marker = marker
        put(d, "a/\(next.identifier)", .marker(marker))
        if let link { put(d, "a/\(link.noteName)", .note(link)) }
    }

    /// Does steps 4 and 5 of a move to a key in docs/remote-format.md.
    private mutating func step(_ d: Int) {
        guard let next = devices[d].next else { return }
        join(d)
        let choice = MarkerChoice(among: seen(d), key: next, wasEncrypted: true)
        devices[d].next = nil
        if choice != .using {
            delete(d, "a/\(next.identifier)")
            look(d)
            return
        }
        told[next.identifier] = next
        moved.append((devices[d].key?.identifier, next.identifier))
        enter(d, next)
    }

    private mutating func unlock(_ d: Int, _ key: AccountKey) {
        guard case .marker(let marker)? = views[d]["a/\(key.identifier)"]?.file else { return }
        if let former = devices[d].key {
            let link = KeyLink(from: former, to: key.identifier, .joined)
            put(d, "a/\(link.noteName)", .note(link))
        }
        devices[d].marker = marker
        enter(d, key)
    }

    private mutating func enter(_ d: Int, _ key: AccountKey) {
        if let former = devices[d].key { devices[d].former.insert(former.identifier) }
        devices[d].key = key
        (devices[d].wasEncrypted, devices[d].stop, devices[d].age) = (true, nil, 0)
        join(d)
        publish(d)
    }

    private mutating func clean(_ d: Int) {
        guard let key = devices[d].key?.identifier, devices[d].age >= 3 else { return }
        let former = devices[d].former
        for (name, head) in heads(d) where head.key != key && head.key.map(former.contains) ?? true { delete(d, name) }
        for (name, version) in views[d].sorted(by: { $0.key < $1.key }) {
            switch version.file {
            case .marker(let marker): if former.contains(marker.identifier) { delete(d, name) }
            case .plainMarker: delete(d, name)
            default: break
            }
        }
    }
}
