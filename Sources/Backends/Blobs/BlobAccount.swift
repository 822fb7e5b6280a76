// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
package import Replication
internal import Sealing

/// The account in the remote, and its key. Finds, creates, restores and moves the account by means of its markers.
final class BlobAccount<Storage: BlobStorage> {
    private let storage: Storage
    private let environment: Environment
    let markers: MarkerFolder<Storage>
    /// What this device knows of the account's encryption. Opening the account turns a phrase into a key.
    private(set) var protection: Protection
    /// The opened account's identifiers.
    private(set) var identifiers: Set<Bits128> = []
    /// The account's identifiers before it moved to its present key.
    private(set) var formerNames: Set<String> = []
    /// Whether opening the account has made it.
    private(set) var wasMade = false
    /// The account as the markers last showed it; `nil` if they have to be read again.
    private(set) var seen: RemoteAccount?

    init(_ storage: Storage, _ environment: Environment, _ protection: Protection) {
        (self.storage, self.environment, self.protection) = (storage, environment, protection)
        markers = MarkerFolder(storage)
    }

    /// How this account's blobs are written and read.
    var wrapping: Wrapping {
        get throws(RemoteError) {
            guard let wrapping = protection.wrapping else { throw RemoteError.keyNeeded }
            return wrapping
        }
    }

    /// Has the next pull read the markers again.
    func doubt() { seen = nil }

    // MARK: Opening

    /// Checks that the remote can be used, and finds its account.
    func open(creatingAccount createsAccount: Bool) async throws(RemoteError) {
        if protection.move != nil { throw RemoteError.moving }
        wasMade = false
        try await storage.check(creatingFolder: createsAccount)
        var found: FoundMarkers
        do throws(RemoteError) { found = try await markers.read(protection) } catch {
            // This device doesn't have the account yet, so a missing directory means the same as an empty one.
            let isNone = error.isFolderMissing && !createsAccount
            throw isNone ? RemoteError(.noAccount, error.message, reason: .folderMissing) : error
        }
        let isByPhrase = try await unlock(found)
        if found.isEmpty {
            guard found.damaged.isEmpty else { throw RemoteError.damagedMarker }
            guard createsAccount else { throw RemoteError(.noAccount, "There is no account here yet.") }
            found = try await makeAccount()
            wasMade = true
        } else if protection.held != nil, found.sealed.isEmpty, found.damaged.isEmpty {
            throw RemoteError(.unencrypted, "The account that is here is not encrypted.")
        }
        identifiers = []
        do throws(RemoteError) { identifiers = try await choose(among: found, isOpening: true) } catch {
            throw isByPhrase && error.code == .keyNeeded ? otherKeys(found) : error
        }
        try await noteFormerNames(found)
    }

    /// Writes the marker of a new account.
    /// - Returns: the markers that are there then. Another device may have written one at the same time; of two sealed
    ///   markers, one gives way.
    private func makeAccount() async throws(RemoteError) -> FoundMarkers {
        let identifier =
            protection.held.map { Bits128($0.key.identifier) }
            ?? Bits128(high: environment.random(), low: environment.random())
        var found = try await writeMarker(of: identifier, try markerBytes(of: identifier), replacing: false)
        guard let held = protection.held else { return found }
        found.sealed[held.key.identifier] = held.marker
        // If there are heads already, the first listing was stale, and other devices may use this marker.
        if MarkerChoice(among: found.seen, key: held.key, wasEncrypted: true) != .using,
            try await storage.list(BlobName.heads).isEmpty
        {
            try await storage.delete(BlobName.marker(identifier))
        }
        return found
    }

    /// Writes an account's marker if it is missing or damaged, also beside damaged ones of other names: that this account
    /// is right is the user's decision. During a move it is the former form's marker, from which the move continues.
    func restore(_ account: String) async throws(RemoteError) -> RemoteAccount {
        guard let identifier = Bits128(account) else {
            throw RemoteError(.unsupported, "The account has an identifier that no folder can have.")
        }
        let bytes = try markerBytes(of: identifier)
        if let move = protection.move { return try await restoreFormer(of: move, identifier, bytes) }
        try await storage.check(creatingFolder: true)
        var found = try await markers.read(protection)
        if protection.held == nil, !found.sealed.isEmpty { throw RemoteError.keyNeeded }
        if !(protection.held.map { found.isThere($0.key) } ?? found.plain.contains(identifier)) {
            // A file of the marker's name is damaged, or somebody's who has replaced the marker.
            found = try await writeMarker(of: identifier, bytes, replacing: found.isTaken(identifier))
        }
        identifiers = []
        identifiers = try await choose(among: found, isOpening: true)
        // Without these notes, a device that signed out before the account had this key would not find it again.
        if case .key(let held) = protection { try await markers.writeFormerNames(of: held, found) }
        try await noteFormerNames(found)
        return remoteAccount(of: identifiers)
    }

    private func restoreFormer(
        of move: KeyMove, _ identifier: Bits128, _ marker: [UInt8]
    ) async throws(RemoteError) -> RemoteAccount {
        try await storage.check(creatingFolder: true)
        let found = try await markers.read(protection)
        if move.formerAccount(found).isEmpty {
            try await write(marker, of: identifier, replacing: found.isTaken(identifier))
        }
        return remoteAccount(of: [identifier])
    }

    /// Writes a marker, or finds that another device has just written the same.
    /// - Returns: the markers that are there then.
    private func writeMarker(
        of identifier: Bits128, _ bytes: [UInt8], replacing isTaken: Bool
    ) async throws(RemoteError) -> FoundMarkers {
        var failure: RemoteError?
        do throws(RemoteError) { try await write(bytes, of: identifier, replacing: isTaken) } catch { failure = error }
        var found = try await markers.read(protection)
        if let failure, !found.isThere(identifier) { throw failure }
        if protection.held == nil { found.plain.insert(identifier) }
        return found
    }

    private func write(
        _ marker: [UInt8], of identifier: Bits128, replacing isTaken: Bool
    ) async throws(RemoteError) {
        let name = BlobName.marker(identifier)
        if isTaken { try await storage.put(name, marker) } else { try await storage.create(name, marker) }
    }

    private func markerBytes(of identifier: Bits128) throws(RemoteError) -> [UInt8] {
        switch (protection, protection.held) {
        case (.key, let held?), (.moving, let held?):
            guard Bits128(held.key.identifier) == identifier else { throw RemoteError.keyNeeded }
            return held.marker.bytes
        case (.none, _), (.moving, nil):
            return AccountMarker(identifier: identifier, time: environment.time()).encoded()
        case (.key, nil), (.phrase, _), (.locked, _): throw RemoteError.keyNeeded
        }
    }

    /// Replaces a phrase with the key that it opens.
    /// - Returns: whether there was a phrase.
    private func unlock(_ found: FoundMarkers) async throws(RemoteError) -> Bool {
        guard case .phrase(let phrase) = protection else { return false }
        let sealed = found.seen.sealed
        if sealed.isEmpty, found.damaged.isEmpty {
            throw found.plain.isEmpty
                ? RemoteError(.noAccount, "There is no account here yet.")
                : RemoteError(.unencrypted, "The account that is here is not encrypted, so it has no recovery phrase.")
        }
        let opened = Set(
            sealed.map(\.identifier).filter { identifier in
                let keys = phrase.key(identifier).blobs
                return sealed.contains { $0.isGenuine(under: keys) }
            })
        var notes = found.notes.filter { !opened.contains($0.first) }
        notes += try await markers.readNotes(found.notes.filter { opened.contains($0.first) })
        switch Unlocking(phrase, on: sealed, notes: notes) {
        case .account(let key):
            guard let marker = sealed.first(where: { $0.identifier == key.identifier }) else { return true }
            protection = .key(HeldKey(key: key, marker: marker))
            return true
        case .wrong where !found.damaged.isEmpty: throw RemoteError.damagedMarker
        case .wrong where sealed.count >= SeenMarkers.mostRead:
            throw RemoteError(
                .keyWrong,
                "The recovery phrase opens none of the first \(SeenMarkers.mostRead) keys in the remote, more than "
                    + "people make. Remove those in its folder a that none of your devices has made.")
        case .wrong:
            throw RemoteError(
                .keyWrong,
                "The recovery phrase is not the one of the account at this address. Check that it is the right one.")
        case .replaced:
            throw RemoteError(
                .keyWrong, "This recovery phrase was replaced by another one. Enter the new one.")
        }
    }

    /// Returns an error that names the other keys' markers, which prevent the use of the key that a phrase has opened.
    private func otherKeys(_ found: FoundMarkers) -> RemoteError {
        let others = found.sealed.values.filter { $0.identifier != protection.held?.key.identifier }
            .sorted { $0.time > $1.time }.prefix(5)
        let names = others.map { "\($0.identifier) (made \(DayText.utc($0.time)))" }
        return RemoteError(
            .otherKeys,
            "The recovery phrase is right, but the remote has other keys too: \(names.joined(separator: ", ")). If "
                + "none of your devices has made them, reject them.")
    }

    // MARK: Polling

    /// Checks that the remote is still there.
    func checkRemote() async throws(RemoteError) {
        do { try await storage.check(creatingFolder: false) } catch { throw error.ofKnownAccount }
    }

    /// Reads the markers, and returns the account that they show.
    func look() async throws(RemoteError) -> RemoteAccount {
        seen = nil
        do throws(RemoteError) { return note(try await present()) } catch { throw error.ofKnownAccount }
    }

    /// Returns the identifiers that the markers show.
    private func present() async throws(RemoteError) -> Set<Bits128> {
        if let move = protection.move { return try await prepare(move) }
        let present: Set<Bits128>
        var found = try await markers.read(protection, expecting: identifiers)
        do throws(RemoteError) { present = try await choose(among: found) } catch
            where error.code == .reset
        {
            // Sync pauses until somebody decides, so one wrong answer is not enough.
            found = try await markers.read(protection, expecting: identifiers)
            present = try await choose(among: found)
        }
        try await noteFormerNames(found)
        return present
    }

    /// Records the identifiers that the markers show.
    private func note(_ present: Set<Bits128>) -> RemoteAccount {
        // A remote may show others each time.
        if identifiers.count > SeenMarkers.mostRead { identifiers = [] }
        identifiers.formUnion(present)
        let account = remoteAccount(of: present)
        seen = account
        return account
    }

    /// Returns the account with these markers.
    func remoteAccount(of markers: Set<Bits128>, isNew: Bool = false) -> RemoteAccount {
        let identifiers = markers.sorted().map(\.description)
        var account = RemoteAccount(
            identifier: identifiers.first ?? "", aliases: Set(identifiers.dropFirst()), formerNames: formerNames,
            isNew: isNew)
        account.isEncrypted = protection.held != nil
        return account
    }

    private func noteFormerNames(_ found: FoundMarkers) async throws(RemoteError) {
        guard case .key(let held) = protection else { return formerNames = [] }
        formerNames = Set(try await markers.formerNames(of: held.key, found).map(\.description))
    }

    /// Returns when the encrypted account here was made, in microseconds since 1970; `nil` if its marker can't be read.
    func encryptedSince() async -> UInt64? {
        guard let found = try? await markers.read(protection),
            case .keyNeeded(let key) = MarkerChoice(among: found.seen, key: nil, wasEncrypted: false)
        else { return nil }
        return found.sealed[key]?.time
    }

    /// Decides which account is here.
    /// - Parameter isOpening: whether the account is being opened or restored, so that nothing is known of it yet.
    /// - Returns: the account's identifiers.
    private func choose(
        among found: FoundMarkers, isOpening: Bool = false
    ) async throws(RemoteError) -> Set<Bits128> {
        if !Rule.encryptedWins.isOn, !found.plain.isEmpty { return try choosePlain(found) }
        let held = protection.held
        let seen = try await markers.proving(found, notesOf: held?.key.identifier)
        let choice = MarkerChoice(
            among: seen, key: held?.key, wasEncrypted: protection.isWanted, rejected: held?.rejected ?? [],
            awaited: held?.awaited)
        switch choice {
        case .using:
            guard let held else { throw RemoteError.keyNeeded }
            return [Bits128(held.key.identifier)]
        case .keyNeeded(let key):
            if let held { throw seen.hasSuccessor(of: held.key) ? RemoteError.keyReplaced : .otherKey }
            throw protection.isWanted ? RemoteError.keyNeeded : .encrypted(under: key)
        case .waiting: throw RemoteError.damagedMarker
        case .reset where isOpening && !found.sealed.isEmpty: throw RemoteError.keyNeeded
        case .reset: throw reset(by: found)
        case .plain: return try choosePlain(found)
        }
    }

    /// Returns the error for the account's absence. It says what is here instead, if resolving can't take that over.
    private func reset(by found: FoundMarkers) -> RemoteError {
        if let held = protection.held {
            if found.sealed.keys.contains(where: { isFormer($0, of: held, formerNames) }) { return .formerKey }
            if found.sealed.isEmpty, !found.plain.isEmpty { return .plainInPlace }
        }
        return RemoteError.accountGone
    }

    private func isFormer(_ key: KeyIdentifier, of held: HeldKey, _ formerNames: Set<String>) -> Bool {
        held.former.keys.contains(key) || formerNames.contains("\(key)")
    }

    private func choosePlain(_ found: FoundMarkers) throws(RemoteError) -> Set<Bits128> {
        let isGone = found.plain.isEmpty || (!identifiers.isEmpty && found.plain.isDisjoint(with: identifiers))
        if isGone, !found.damaged.isEmpty, identifiers.isEmpty || !found.damaged.isDisjoint(with: identifiers) {
            throw RemoteError.damagedMarker
        }
        if found.plain.isEmpty { throw RemoteError.accountGone }
        if isGone { throw RemoteError(.reset, "There is another account here than before.") }
        return found.plain
    }

    // MARK: Keys

    /// Keeps this device's key: other keys' markers that are in the remote now no longer count.
    func rejectOtherKeys(andSuccessors successors: Bool) async throws(RemoteError) {
        guard case .key(var held) = protection else { throw RemoteError.keyNeeded }
        try await storage.check(creatingFolder: false)
        let seen = try await markers.proving(try await markers.read(protection), notesOf: held.key.identifier)
        if !successors, seen.hasSuccessor(of: held.key) { throw RemoteError.keyReplaced }
        held.rejected = Set(seen.sealed.map(\.identifier)).subtracting([held.key.identifier])
        held.awaited = nil
        protection = .key(held)
    }

    /// Waits for the recovery phrase of the other key whose account is here. It must not be one that the account has
    /// left: somebody with its phrase, from which the account was moved away, may have put the remote back.
    /// - Parameter formerNames: the account's former names that this device knows.
    func awaitOtherKey(besides formerNames: Set<String>) async throws(RemoteError) {
        guard case .key(var held) = protection else { throw RemoteError.keyNeeded }
        try await storage.check(creatingFolder: false)
        let seen = try await markers.read(protection).seen
        guard
            case .keyNeeded(let key) = MarkerChoice(
                among: seen, key: nil, wasEncrypted: true, rejected: held.rejected)
        else { throw RemoteError.accountGone }
        if isFormer(key, of: held, formerNames) { throw RemoteError.formerKey }
        held.awaited = key == held.key.identifier ? nil : key
        protection = .key(held)
    }

    /// Tells other devices of a move, unless they have moved to another key.
    /// - Returns: the identifiers of the account, whose former form is to be read.
    private func prepare(_ move: KeyMove) async throws(RemoteError) -> Set<Bits128> {
        // Write the marker, the link and the former names, and then find them all there.
        for _ in 0..<4 {
            let found = try await markers.read(protection, expecting: identifiers)
            let seen = try await markers.proving(found, notesOf: move.next.key.identifier)
            let step = BlobMove(
                storage: storage, move: move, seen: seen, notes: found.noteNames, former: move.formerAccount(found))
            if let identifiers = try await step.advance() { return identifiers }
        }
        throw RemoteError(
            .unavailable, "A file that was just written to the remote is missing there. The service retries.")
    }

    /// Notes that this device has joined the account's key: records the account's former forms, and tells devices that
    /// have this device's former key.
    func noteJoining(from former: AccountKey?, _ forms: FormerForms) async throws(RemoteError) {
        guard case .key(var held) = protection, !forms.isEmpty, !forms.keys.contains(held.key.identifier) else {
            return
        }
        held.former = forms
        protection = .key(held)
        if let former { try await markers.write(KeyLink(from: former, to: held.key.identifier, .joined)) }
        try await markers.writeFormerNames(of: held, try await markers.read(protection))
    }

    /// Checks that this device's key is still the account's, since it may have been replaced, and writes the notes of
    /// the account's former names.
    func confirmFormerNames() async throws(RemoteError) {
        guard case .key(let held) = protection else { return }
        seen = nil
        let found = try await markers.read(protection, expecting: identifiers)
        _ = note(try await choose(among: found))
        try await markers.writeFormerNames(of: held, found)
    }

    /// The forms that the account had before it was under its key; `nil` if there were none.
    var former: FormerForms? {
        guard case .key(let held) = protection, !held.former.isEmpty else { return nil }
        return held.former
    }

    /// Notes that nothing is left of the account's former forms.
    func noteFormerRemoved() {
        guard case .key(var held) = protection else { return }
        held.former.areRemoved = true
        protection = .key(held)
    }
}

extension RemoteError {
    static let moving = RemoteError(
        .unavailable, "The account is moving to a new key. Wait until the move is complete.")
    static let damagedMarker = RemoteError(
        .damaged,
        "The file that says which account is here is damaged or has not arrived completely.", reason: .markerDamaged)
    package static let keyNeeded = RemoteError(
        .keyNeeded, "The account is encrypted, and this device does not have its key. Enter its recovery phrase.")
    /// The error for an account that is encrypted although this device knows it as unencrypted.
    static func encrypted(under key: KeyIdentifier?) -> RemoteError {
        var error = keyNeeded
        error.encryptedAccount = key.map { Bits128($0).description }
        return error
    }

    static let keyReplaced = RemoteError(
        .keyNeeded, "Another device of the account has given it a new key. Enter its recovery phrase.",
        reason: .keyReplaced)
    /// The error for a key that may be somebody else's.
    static let otherKey = RemoteError(
        .keyNeeded,
        "The account has another key than this device. If one of your devices has replaced the key, enter the new "
            + "recovery phrase; if not, somebody else has put it there: resolve in favour of this device.")
}

extension RemoteError {
    /// The same error, about an account that was opened before: a missing drive, or a server that stopped listing, is
    /// likelier than a deleted account.
    fileprivate var ofKnownAccount: RemoteError {
        code == .noAccount ? RemoteError(.unavailable, message, reason: reason) : self
    }
}
