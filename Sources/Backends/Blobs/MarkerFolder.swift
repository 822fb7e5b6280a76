// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import Replication
internal import Sealing

/// The markers and notes in a remote.
struct FoundMarkers {
    /// The identifiers of intact plain markers.
    var plain: Set<Bits128> = []
    /// The intact sealed markers.
    var sealed: [KeyIdentifier: SealedMarker] = [:]
    /// The names of markers that are damaged or incomplete.
    var damaged: Set<Bits128> = []
    /// The links in notes, decoded from the notes' names and so without proofs.
    var notes: [KeyLink] = []
    /// The former names of accounts in notes, decoded likewise.
    var formerNames: [FormerName] = []

    /// Whether there is no readable marker.
    var isEmpty: Bool { plain.isEmpty && sealed.isEmpty }

    func isThere(_ identifier: Bits128) -> Bool {
        plain.contains(identifier) || sealed[KeyIdentifier(identifier)] != nil
    }

    /// Whether there is a file of a marker's name, be it that marker or not.
    func isTaken(_ identifier: Bits128) -> Bool { isThere(identifier) || damaged.contains(identifier) }

    /// Whether the marker of a key's account is there, made by a holder of the key.
    func isThere(_ key: AccountKey) -> Bool { sealed[key.identifier]?.isGenuine(under: key.blobs) == true }

    /// The names of all notes.
    var noteNames: Set<String> { Set(notes.map(\.noteName) + formerNames.map(\.noteName)) }

    var seen: SeenMarkers {
        SeenMarkers(
            sealed: sealed.values.sorted { $0.identifier < $1.identifier }, notes: notes,
            damaged: Set(damaged.map(KeyIdentifier.init)))
    }
}

/// The plain and sealed markers, and the notes, in `a/`. MarkerChoice decides which marker counts.
final class MarkerFolder<Storage: BlobStorage> {
    private let storage: Storage
    /// The plain markers that this process has verified. Markers never change.
    private var plain: Set<Bits128> = []
    /// The same for sealed markers, and for notes by their names.
    private var sealed: [Bits128: SealedMarker] = [:]
    private var notes: [String: KeyLink] = [:]
    private var formerNames: [String: FormerName] = [:]
    /// Whether the folder holds more files than are listed.
    private(set) var isFull = false
    /// Whether to read files again that this process has verified.
    var isThorough = false

    init(_ storage: Storage) { self.storage = storage }

    /// Forgets what was verified, so that everything is read again.
    func forget() { (plain, sealed, notes, formerNames) = ([], [:], [:], [:]) }

    /// Reads the markers in the remote, and repairs those of this device's keys.
    /// - Parameter expected: identifiers to read before others; also if they are not listed, in a folder too full to be
    ///   listed whole.
    func read(
        _ protection: Protection, expecting expected: Set<Bits128> = []
    ) async throws(RemoteError) -> FoundMarkers {
        var found = FoundMarkers()
        let listings = try await storage.list(BlobName.markers)
        isFull = BlobName.areTooMany(listings)
        found.notes = listings.compactMap { KeyLink(noteName: $0.name) }
        found.formerNames = listings.compactMap { FormerName(noteName: $0.name) }
        let own = protection.held.map { Bits128($0.key.identifier) }
        // If the folder is too full, a marker that is not listed may still exist.
        let names = Set(listings.compactMap { Bits128($0.name) }).union(isFull ? expected : [])
        func rank(_ name: Bits128) -> Int { name == own ? 0 : expected.contains(name) ? 1 : 2 }
        let read = names.sorted { (rank($0), $0) < (rank($1), $1) }.prefix(SeenMarkers.mostRead)
        // The folder may hold others each time.
        plain.formIntersection(read)
        let isRead = Set(read)
        sealed = sealed.filter { isRead.contains($0.key) }
        for identifier in read { try await self.read(identifier, of: protection.held, &found) }
        for held in protection.ownKeys { await mend(held, &found) }
        return found
    }

    /// Repairs the marker of a key that this device has, if it is damaged or altered. All holders of the key write the
    /// same bytes, so it does no harm if several do, or if the file was about to arrive.
    private func mend(_ held: HeldKey, _ found: inout FoundMarkers) async {
        let name = Bits128(held.key.identifier)
        let there = found.sealed[held.key.identifier]
        guard found.damaged.contains(name) || there.map({ !$0.isGenuine(under: held.key.blobs) }) == true else {
            return
        }
        // If this fails, the marker counts as damaged, and the caller reports that.
        do throws(RemoteError) { try await storage.put(BlobName.marker(name), held.marker.bytes) } catch { return }
        found.damaged.remove(name)
        found.sealed[held.key.identifier] = held.marker
    }

    private func read(
        _ identifier: Bits128, of held: HeldKey?, _ found: inout FoundMarkers
    ) async throws(RemoteError) {
        if !isThorough, recall(identifier, &found) { return }
        // The file may now be a marker of the other kind.
        plain.remove(identifier)
        sealed[identifier] = nil
        let content = try await storage.get(
            BlobName.marker(identifier), limit: AccountMarker.limit, unless: nil)
        guard case .content(let bytes, _) = content else { return }
        do throws(BlobFlaw) {
            let marker = try AccountMarker(decoding: bytes)
            guard marker.identifier == identifier else { throw BlobFlaw.foreign }
            found.plain.insert(identifier)
            plain.insert(identifier)
        } catch .tooNew {
            try readSealed(bytes, identifier, of: held, &found)
        } catch .tooOld {
            throw RemoteError(
                .unsupported, "The account was made by a version from before the first release; make a new one.")
        } catch {
            found.damaged.insert(identifier)
        }
    }

    private func readSealed(
        _ bytes: [UInt8], _ identifier: Bits128, of held: HeldKey?, _ found: inout FoundMarkers
    ) throws(RemoteError) {
        do throws(SealingFlaw) {
            let marker = try SealedMarker(decoding: bytes)
            guard Bits128(marker.identifier) == identifier else { throw SealingFlaw.foreign }
            found.sealed[marker.identifier] = marker
            // An altered marker of this device's own key isn't cached, because it may be repaired.
            if held?.key.identifier != marker.identifier || marker == held?.marker { sealed[identifier] = marker }
        } catch .tooNew {
            throw RemoteError.tooNew
        } catch {
            found.damaged.insert(identifier)
        }
    }

    /// Adds a marker that this process has verified; returns false if it has not.
    private func recall(_ identifier: Bits128, _ found: inout FoundMarkers) -> Bool {
        if plain.contains(identifier) {
            found.plain.insert(identifier)
        } else if let marker = sealed[identifier] {
            found.sealed[marker.identifier] = marker
        } else {
            return false
        }
        return true
    }

    /// Reads notes, for their proofs. Skips those that can't be read.
    func readNotes(_ links: [KeyLink]) async throws(RemoteError) -> [KeyLink] { try await read(links, \.notes) }

    /// - Parameter known: the notes of this kind that were read before.
    @discardableResult
    private func read<Kind>(
        _ named: [KeyNote<Kind>], _ known: ReferenceWritableKeyPath<MarkerFolder, [String: KeyNote<Kind>]>
    ) async throws(RemoteError) -> [KeyNote<Kind>] {
        var found: [KeyNote<Kind>] = []
        let names = named.map(\.noteName).sorted().prefix(SeenMarkers.mostRead)
        let isNamed = Set(names)
        self[keyPath: known] = self[keyPath: known].filter { isNamed.contains($0.key) }
        for name in names {
            if self[keyPath: known][name] == nil || isThorough {
                guard let bytes = try await note(named: name) else { continue }
                self[keyPath: known][name] = try? KeyNote(note: bytes, named: name)
            }
            if let note = self[keyPath: known][name] { found.append(note) }
        }
        return found
    }

    /// Returns the former names of a key's account, as holders of the key have proven them.
    func formerNames(of key: AccountKey, _ found: FoundMarkers) async throws(RemoteError) -> Set<KeyIdentifier> {
        try await read(found.formerNames.filter { $0.key == key.identifier }, \.formerNames)
        return Set(formerNames.values.filter { $0.isProven(by: key.blobs) }.map(\.name))
    }

    private func note(named name: String) async throws(RemoteError) -> [UInt8]? {
        let content = try await storage.get("\(BlobName.markers)/\(name)", limit: AccountMarker.limit, unless: nil)
        guard case .content(let bytes, _) = content else { return nil }
        return bytes
    }

    /// Returns the markers and notes that were found, with the proofs of a key's notes.
    func proving(_ found: FoundMarkers, notesOf own: KeyIdentifier?) async throws(RemoteError) -> SeenMarkers {
        var seen = found.seen
        guard let own else { return seen }
        seen.notes = found.notes.filter { $0.first != own }
        seen.notes += try await readNotes(found.notes.filter { $0.first == own })
        return seen
    }

    /// Writes a note, unless it exists.
    func write(_ note: KeyLink) async throws(RemoteError) {
        if try await self.note(named: note.noteName) != nil { return }
        try await storage.create(note)
    }

    /// Writes the notes of the former names of a key's account that are missing or have other content.
    func writeFormerNames(of held: HeldKey, _ found: FoundMarkers) async throws(RemoteError) {
        let there = found.noteNames
        for note in held.formerNotes {
            if !there.contains(note.noteName) {
                try await storage.create(note)
            } else if try await self.note(named: note.noteName) != note.note() {
                try await storage.put("\(BlobName.markers)/\(note.noteName)", note.note())
            }
        }
    }
}

extension BlobStorage {
    /// Writes a note.
    func create(_ note: KeyNote<some NoteKind>) async throws(RemoteError) {
        try await create("\(BlobName.markers)/\(note.noteName)", note.note())
    }
}
