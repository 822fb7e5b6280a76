// SPDX-License-Identifier: Apache-2.0

// What lies in `a/`: markers in plain, sealed ones, and notes. Which of them counts is MarkerChoice's to say.

internal import BackendSupport
internal import Replication
internal import Sealing

/// The markers and notes of a place.
struct FoundMarkers {
    /// The identifiers of those in plain that are whole.
    var plain: Set<Bits128> = []
    /// Sealed ones that are whole.
    var sealed: [KeyIdentifier: SealedMarker] = [:]
    /// Something is under these names, and it is not whole.
    var damaged: Set<Bits128> = []
    /// The links of notes, as their names have them.
    var notes: [KeyLink] = []

    /// No marker is there that can be read.
    var areNone: Bool { plain.isEmpty && sealed.isEmpty }

    func isThere(_ identifier: Bits128) -> Bool {
        plain.contains(identifier) || sealed[KeyIdentifier(identifier)] != nil
    }

    var seen: SeenMarkers {
        SeenMarkers(
            sealed: sealed.values.sorted { $0.identifier < $1.identifier }, notes: notes,
            damaged: Set(damaged.map(KeyIdentifier.init)))
    }
}

/// Why markers are read.
enum MarkerReading {
    /// An account is being signed in to: nothing is known of it yet.
    case opening
    /// The account was there before.
    case looking
}

extension BlobBackend {
    /// Reads the markers that are there.
    /// - Parameter expected: identifiers that are asked for even where so much is there that not all is listed.
    func readMarkers(expecting expected: Set<Bits128> = []) async throws(RemoteError) -> FoundMarkers {
        var found = FoundMarkers()
        let (listings, isAll) = try await list(BlobName.markers)
        found.notes = listings.compactMap { KeyLink(noteName: $0.name) }
        let own = protection.held.map { Bits128($0.key.identifier) }
        // What is not listed is not lost where too much is.
        let names = Set(listings.compactMap { Bits128($0.name) }).union(isAll ? [] : expected)
        for identifier in names.sorted(by: { ($0 == own ? 0 : 1, $0) < ($1 == own ? 0 : 1, $1) }) {
            guard found.sealed.count < SeenMarkers.mostRead else { break }
            try await readMarker(identifier, &found)
        }
        await mendMarker(&found)
        return found
    }

    /// Puts the marker of this device's key right where it is there and damaged. All who have the key write the same
    /// bytes, so that it does no harm if several do, or if the file was about to arrive.
    private func mendMarker(_ found: inout FoundMarkers) async {
        guard case .key(let held) = protection else { return }
        let name = Bits128(held.key.identifier)
        let there = found.sealed[held.key.identifier]
        guard found.damaged.contains(name) || there.map({ !$0.isGenuine(under: held.key.blobs) }) == true else {
            return
        }
        // Where that can't be done the marker counts as damaged, which is said then.
        do throws(RemoteError) { try await storage.put(BlobName.marker(name), held.marker.bytes) } catch { return }
        found.damaged.remove(name)
        found.sealed[held.key.identifier] = held.marker
    }

    private func readMarker(_ identifier: Bits128, _ found: inout FoundMarkers) async throws(RemoteError) {
        if !isThorough, recall(identifier, &found) { return }
        // What is there now may be of the other kind.
        memory.goodMarkers.remove(identifier)
        memory.sealedMarkers[identifier] = nil
        let content = try await storage.get(
            BlobName.marker(identifier), limit: AccountMarker.limit, unless: nil)
        guard case .content(let bytes, _) = content else { return }
        do throws(BlobFlaw) {
            let marker = try AccountMarker(decoding: bytes)
            guard marker.identifier == identifier else { return }
            found.plain.insert(identifier)
            memory.goodMarkers.insert(identifier)
        } catch .tooNew {
            try readSealed(bytes, identifier, &found)
        } catch .tooOld {
            throw RemoteError(
                .unsupported, "The account was made by a version from before the first release; make a new one.")
        } catch {
            found.damaged.insert(identifier)
        }
    }

    private func readSealed(
        _ bytes: [UInt8], _ identifier: Bits128, _ found: inout FoundMarkers
    ) throws(RemoteError) {
        do throws(SealingFlaw) {
            let marker = try SealedMarker(decoding: bytes)
            guard Bits128(marker.identifier) == identifier else { return }
            found.sealed[marker.identifier] = marker
            // One's own that was altered may be put right.
            let isOwn = protection.held?.key.identifier == marker.identifier
            if !isOwn || marker == protection.held?.marker { memory.sealedMarkers[identifier] = marker }
        } catch .tooNew {
            throw RemoteError.tooNew
        } catch {
            found.damaged.insert(identifier)
        }
    }

    /// Takes a marker that this process has read: it never changes.
    private func recall(_ identifier: Bits128, _ found: inout FoundMarkers) -> Bool {
        if memory.goodMarkers.contains(identifier) {
            found.plain.insert(identifier)
        } else if let marker = memory.sealedMarkers[identifier] {
            found.sealed[marker.identifier] = marker
        } else {
            return false
        }
        return true
    }

    /// Decides which account is here.
    /// - Returns: its identifiers.
    func choose(
        among found: FoundMarkers, as reading: MarkerReading
    ) async throws(RemoteError) -> Set<Bits128> {
        if !Rule.encryptedWins.isOn, !found.plain.isEmpty { return try choosePlain(found) }
        let held = protection.held
        let choice = MarkerChoice(
            among: try await read(found, provingNotesOf: held?.key.identifier), key: held?.key,
            wasEncrypted: protection.isWanted,
            rejected: held?.rejected ?? [])
        switch choice {
        case .using:
            guard let held else { throw RemoteError.keyNeeded }
            return [Bits128(held.key.identifier)]
        case .keyNeeded: throw RemoteError.keyNeeded
        case .waiting: throw Self.damagedMarker
        case .reset where reading == .opening && !found.sealed.isEmpty: throw RemoteError.keyNeeded
        case .reset: throw RemoteError(.reset, "The account that was here is gone.")
        case .plain: return try choosePlain(found)
        }
    }

    /// Reads what else counts for the choice.
    /// - Parameter own: the key whose notes are read for their proofs.
    func read(
        _ found: FoundMarkers, provingNotesOf own: KeyIdentifier?
    ) async throws(RemoteError) -> SeenMarkers {
        var seen = found.seen
        guard let own else { return seen }
        seen.notes = found.notes.filter { $0.first != own }
        seen.notes += try await readNotes(found.notes.filter { $0.first == own })
        return seen
    }

    package func rejectOtherKeys(andSuccessors successors: Bool) async throws {
        try checkOpen()
        guard case .key(var held) = protection else { throw RemoteError.keyNeeded }
        try await storage.check(makingPlace: false)
        let seen = try await read(try await readMarkers(), provingNotesOf: held.key.identifier)
        let links = seen.notes + seen.sealed.flatMap(\.links)
        if !successors, links.contains(where: { $0.first == held.key.identifier && $0.isProven(by: held.key.blobs) }) {
            throw RemoteError(
                .keyNeeded, "Another device of the account has given it a new key. Enter its recovery phrase.")
        }
        held.rejected = Set(seen.sealed.map(\.identifier)).subtracting([held.key.identifier])
        protection = .key(held)
    }

    private func choosePlain(_ found: FoundMarkers) throws(RemoteError) -> Set<Bits128> {
        let expected = accountIdentifiers
        let isGone = found.plain.isEmpty || (!expected.isEmpty && found.plain.isDisjoint(with: expected))
        if isGone, !found.damaged.isEmpty, expected.isEmpty || !found.damaged.isDisjoint(with: expected) {
            throw Self.damagedMarker
        }
        if found.plain.isEmpty { throw RemoteError(.reset, "The account that was here is gone.") }
        if isGone { throw RemoteError(.reset, "There is another account here than before.") }
        return found.plain
    }

    /// Reads notes, for their proofs. What is not whole is passed over.
    func readNotes(_ links: [KeyLink]) async throws(RemoteError) -> [KeyLink] {
        var notes: [KeyLink] = []
        for name in links.map(\.noteName).sorted().prefix(SeenMarkers.mostRead) {
            if memory.notes[name] == nil || isThorough {
                let content = try await storage.get(
                    "\(BlobName.markers)/\(name)", limit: AccountMarker.limit, unless: nil)
                guard case .content(let bytes, _) = content else { continue }
                memory.notes[name] = try? KeyLink(note: bytes, named: name)
            }
            if let link = memory.notes[name] { notes.append(link) }
        }
        return notes
    }
}
