// SPDX-License-Identifier: Apache-2.0

// The keys of an account, and nothing else of it. Devices encrypt it, replace its key and unlock at any time; a folder
// delivers their markers and notes one by one. KeyMove, MarkerChoice and Unlocking decide what they do. In the end all
// devices have one key, which was not replaced. In some runs an attacker who can write to the folder adds links with
// guessed proofs. These may stop devices for good, but lead none back to a key that it sees replaced.

internal import Sealing

/// One run of devices that move an account to keys.
final class KeyWorld {
    private var chance: Chance
    private let trace: Trace
    private var time = Timeline.start
    private var devices: [KeyDevice]
    /// The keys whose words are known to all users. A user doesn't tell the words while the move may still give way.
    private var keys: [KeyIdentifier: AccountKey] = [:]
    /// The keys that the account no longer has.
    private var replaced: Set<KeyIdentifier> = []
    /// The links of moves that have ended.
    private var replacements: [KeyLink] = []
    private var lastVersion = 0
    private var violation: String?
    private var attacks: Chance
    private let isAttacked: Bool
    /// How often something was excused.
    private(set) var excused: [Excuse: Int] = [:]

    init(seed: UInt64, trace: Trace) {
        chance = Chance(seed: seed, stream: 8)
        attacks = Chance(seed: seed, stream: 10)
        isAttacked = attacks.happens(0.2)
        self.trace = trace
        devices = (0..<chance.of(2...4)).map { _ in KeyDevice() }
    }

    /// - Returns: the rule that was broken; `nil` if none was.
    func run() -> String? {
        for _ in 0..<chance.of(10...80) {
            time += second
            act(chance.below(devices.count))
            if isAttacked {
                if attacks.happens(0.3) { attack() }
                lookForKeysSeenReplaced()
            }
        }
        settle()
        if isAttacked { lookForKeysSeenReplaced() }
        guard violation == nil, let verdict = verdict() else { return violation }
        if !isAttacked { return verdict }
        excused[.attackedKeys, default: 0] += 1
        return nil
    }

    private func act(_ index: Int) {
        switch chance.below(10) {
        case 0...4: carry(to: index)
        case 5, 6: advance(index)
        case 7: if devices[index].canMove { begin(index) }
        case 8: if !keys.isEmpty { unlock(index, with: chance.one(of: keys.values.sorted(by: Self.isLess))) }
        default: unlock(index)
        }
    }

    /// Delivers everything, and enters the words of the account's key on each device that needs them.
    private func settle() {
        for _ in 0..<12 {
            for index in devices.indices {
                for other in devices.indices { devices[index].files.merge(devices[other].files) { $0.newer($1) } }
                for _ in 0..<4 { advance(index) }
                unlock(index)
            }
        }
    }

    private func verdict() -> String? {
        let held = Set(devices.map { $0.held?.key.identifier })
        if held.count > 1 { return "I21: the devices have \(held.count) keys" }
        if devices.contains(where: { $0.move != nil }) { return "I21: a move never ends" }
        guard let key = devices.first?.held?.key.identifier else { return nil }
        if devices.contains(where: { $0.choice != .using }) { return "I21: a device stands still" }
        return replaced.contains(key) ? "I21: the account is under a key that was replaced" : nil
    }

    private static func isLess(_ a: AccountKey, _ b: AccountKey) -> Bool { a.identifier < b.identifier }

    // MARK: Devices

    /// Delivers one file of a random device.
    private func carry(to index: Int) {
        let files = devices[chance.below(devices.count)].files.sorted { $0.key < $1.key }
        guard !files.isEmpty else { return }
        let (name, file) = chance.one(of: files)
        devices[index].files.merge([name: file]) { $0.newer($1) }
    }

    private func begin(_ index: Int) {
        let next = HeldKey(replacing: devices[index].held, time: time) { [self] in chance.next() }
        devices[index].move = KeyMove(from: devices[index].held, to: next)
        note(index, "moves to \(next.key.identifier)")
    }

    /// Takes one step of a move.
    private func advance(_ index: Int) {
        guard let move = devices[index].move else { return }
        let own = "\(move.next.key.identifier)"
        let hasFormer = move.former.map { devices[index].has("\($0.key.identifier)") } ?? true
        switch move.step(devices[index].seen(by: move.next.key), notes: devices[index].notes, hasFormer: hasFormer) {
        case .writeMarker: write(own, .marker(move.next.marker), index)
        case .writeNote(let link): write(link.noteName, .note(link), index)
        case .giveWay(let link):
            write(link.noteName, .note(link), index)
            write(own, nil, index)
            devices[index].move = nil
            note(index, "gives way")
        case .readFormer:
            // A move of an unencrypted account replaces no key.
            if let former = move.former {
                replaced.insert(former.key.identifier)
                if let link = move.link { replacements.append(link) }
                devices[index].left.insert(former.key.identifier)
            }
            keys[move.next.key.identifier] = move.next.key
            devices[index].held = move.next
            devices[index].move = nil
            if !isAttacked, devices[index].choice != .using {
                violation = violation ?? "I21: a device goes over to a lesser key"
            }
            note(index, "is under \(own)")
        // Devices of this form never sign out.
        case .writeFormerNames, .wait, .reset: break
        }
    }

    /// Enters the words of the key that the device needs.
    private func unlock(_ index: Int) {
        guard case .keyNeeded(let needed) = devices[index].choice, let key = keys[needed] else { return }
        unlock(index, with: key)
    }

    /// Enters the words of a key, perhaps of a replaced one.
    private func unlock(_ index: Int, with key: AccountKey) {
        guard devices[index].move == nil, case .keyNeeded = devices[index].choice else { return }
        let phrase = RecoveryPhrase(of: key)
        let markers = devices[index].markers
        guard case .account(let opened) = Unlocking(phrase, on: markers, notes: devices[index].seen(by: key).notes),
            let marker = markers.first(where: { $0.identifier == opened.identifier })
        else { return }
        let successors = markers.filter { marker in
            marker.links.contains { link in
                // An attacker can claim that a key between the two gave way, which no device here can check.
                let isSure = !isAttacked || link.second == marker.identifier
                return link.kind == .replaced && link.isProven(by: key.blobs) && isSure
            }
        }
        if successors.contains(where: { $0.identifier != opened.identifier }) {
            violation = violation ?? "I21: the words of a key that was replaced open the account"
        }
        // The service also names the other key if the words open one that is not the account's.
        let seen = devices[index].seen(by: opened)
        guard MarkerChoice(among: seen, key: opened, wasEncrypted: true) == .using else { return }
        if !isAttacked, devices[index].left.contains(opened.identifier) {
            violation = violation ?? "I21: a device goes back to a key that it knows to be replaced"
        }
        let former = devices[index].held
        devices[index].held = HeldKey(key: opened, marker: marker)
        note(index, "unlocks \(opened.identifier)")
        guard let former, former.key.identifier != opened.identifier else { return }
        // If two keys were made independently, later news may say that the former one counts.
        let isKnown = devices[index].seen(by: former.key).hasSuccessor(of: former.key, by: [.replaced])
        if isKnown, replaced.contains(former.key.identifier) {
            devices[index].left.insert(former.key.identifier)
        }
        let link = KeyLink(from: former.key, to: opened.identifier, .joined)
        write(link.noteName, .note(link), index)
    }

    // MARK: An attacker

    /// Adds a link between two keys whose markers are there. The attacker knows the first key's identifier, and guesses
    /// its secret.
    private func attack() {
        let identifiers = Set(devices.flatMap { $0.markers.map(\.identifier) }).sorted()
        guard let first = identifiers.isEmpty ? nil : attacks.one(of: identifiers),
            let guess = AccountKey(secret: (0..<16).map { _ in UInt8(attacks.below(256)) }, identifier: first)
        else { return }
        let kind = attacks.one(of: [KeyLink.Kind.replaced, .joined, .gaveWay])
        let link = KeyLink(from: guess, to: attacks.one(of: identifiers), kind)
        guard link.second != first, !devices.contains(where: { $0.has(link.noteName) }) else { return }
        write(link.noteName, .note(link), attacks.below(devices.count))
    }

    private func lookForKeysSeenReplaced() {
        for device in devices {
            guard let held = device.held?.key.identifier, device.choice == .using else { continue }
            let markers = Set(device.markers.map(\.identifier))
            if replacements.contains(where: { $0.first == held && markers.contains($0.second) }) {
                violation = violation ?? "I21: a device goes on under a key that it sees replaced"
            }
        }
    }

    private func write(_ name: String, _ content: KeyFile.Content?, _ index: Int) {
        lastVersion += 1
        devices[index].files[name] = KeyFile(content: content, version: lastVersion)
    }

    private func note(_ index: Int, _ line: String) {
        trace.note(time, UInt64(index), line: "device \(index) \(line)")
    }
}

/// A file in `a/`.
private struct KeyFile {
    enum Content {
        case marker(SealedMarker)
        case note(KeyLink)
    }

    /// `nil` if the file was deleted.
    var content: Content?
    var version: Int

    func newer(_ other: KeyFile) -> KeyFile { version >= other.version ? self : other }
}

/// A device, and what it sees of `a/`.
private struct KeyDevice {
    var held: HeldKey?
    var move: KeyMove?
    /// The keys that the device has left, and knows to be replaced.
    var left: Set<KeyIdentifier> = []
    var files: [String: KeyFile] = [:]

    var markers: [SealedMarker] {
        files.sorted { $0.key < $1.key }.compactMap { file in
            if case .marker(let marker) = file.value.content { marker } else { nil }
        }
    }

    private var links: [KeyLink] {
        files.sorted { $0.key < $1.key }.compactMap { file in
            if case .note(let link) = file.value.content { link } else { nil }
        }
    }

    /// The names of the notes that the device sees.
    var notes: Set<String> { Set(links.map(\.noteName)) }

    func has(_ name: String) -> Bool { files[name]?.content != nil }

    /// What a device with the key sees. It checks the proofs of that key's notes, and knows the others by name.
    func seen(by key: AccountKey?) -> SeenMarkers {
        let links = links.compactMap { $0.first == key?.identifier ? $0 : KeyLink(noteName: $0.noteName) }
        return SeenMarkers(sealed: markers, notes: links)
    }

    var choice: MarkerChoice { MarkerChoice(among: seen(by: held?.key), key: held?.key, wasEncrypted: held != nil) }

    /// Whether the device can begin a move.
    var canMove: Bool { move == nil && (choice == .using || choice == .plain) }
}
