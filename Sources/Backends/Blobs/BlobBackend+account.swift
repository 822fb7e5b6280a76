// SPDX-License-Identifier: Apache-2.0

// Whose place it is: found, made and put back by means of the markers in it.

internal import BackendSupport
public import Replication
internal import Sealing

extension BlobBackend {
    /// Checks that the place can be used and finds its account.
    public func open(creatingAccount createsAccount: Bool) async throws(RemoteError) -> RemoteAccount {
        try checkOpen()
        if protection.move != nil { throw RemoteError.moving }
        try await storage.check(makingPlace: createsAccount)
        var found = try await readMarkers()
        let isByPhrase = try await unlock(found)
        if found.areNone {
            guard found.damaged.isEmpty else { throw Self.damagedMarker }
            guard createsAccount else { throw RemoteError(.noAccount, "There is no account here yet.") }
            found = try await makeAccount()
        } else if protection.held != nil, found.sealed.isEmpty, found.damaged.isEmpty {
            throw RemoteError(.inPlain, "The account that is here is not encrypted.")
        }
        accountIdentifiers = []
        do throws(RemoteError) { accountIdentifiers = try await choose(among: found, as: .opening) } catch {
            throw isByPhrase && error.code == .keyNeeded ? otherKeys(found) : error
        }
        let heads = try await storage.list(BlobName.heads).filter { Origin($0.name) != nil }
        try await checkFormat(of: heads)
        return Self.account(accountIdentifiers, isNew: accountIdentifiers.count == 1 && heads.isEmpty)
    }

    /// Makes the marker of a new account.
    /// - Returns: the markers that are there then. Another device may have made one at the same moment; of two that are
    ///   sealed one gives way.
    private func makeAccount() async throws(RemoteError) -> FoundMarkers {
        let identifier =
            protection.held.map { Bits128($0.key.identifier) }
            ?? Bits128(high: environment.random(), low: environment.random())
        let bytes = try markerBytes(of: identifier)
        let failure = await failure { () throws(RemoteError) in
            try await storage.create(BlobName.marker(identifier), bytes)
        }
        var found = try await readMarkers()
        if let failure, !found.isThere(identifier) { throw failure }
        guard let held = protection.held else {
            found.plain.insert(identifier)
            return found
        }
        found.sealed[held.key.identifier] = held.marker
        if MarkerChoice(among: found.seen, key: held.key, wasEncrypted: true) != .using {
            try await storage.delete(BlobName.marker(identifier))
        }
        return found
    }

    /// Finds the key that a phrase stands for.
    /// - Returns: whether there is a phrase.
    private func unlock(_ found: FoundMarkers) async throws(RemoteError) -> Bool {
        guard case .phrase(let phrase) = protection else { return false }
        let markers = found.seen.sealed
        if markers.isEmpty, found.damaged.isEmpty {
            throw found.plain.isEmpty
                ? RemoteError(.noAccount, "There is no account here yet.")
                : RemoteError(.inPlain, "The account that is here is not encrypted, so it has no recovery phrase.")
        }
        let opened = Set(
            markers.map(\.identifier).filter { identifier in
                let keys = phrase.key(identifier).blobs
                return markers.contains { $0.isGenuine(under: keys) }
            })
        var notes = found.notes.filter { !opened.contains($0.first) }
        notes += try await readNotes(found.notes.filter { opened.contains($0.first) })
        switch Unlocking(phrase, on: markers, notes: notes) {
        case .account(let key):
            guard let marker = markers.first(where: { $0.identifier == key.identifier }) else { return true }
            protection = .key(HeldKey(key: key, marker: marker))
            return true
        case .wrong where !found.damaged.isEmpty: throw Self.damagedMarker
        case .wrong:
            throw RemoteError(
                .keyWrong, "The recovery phrase is not that of the account that is here. Look whether it is another's.")
        case .replaced:
            throw RemoteError(
                .keyWrong, "The account's recovery phrase was replaced by another one. Enter the one that came later.")
        }
    }

    /// Names the markers that are in the way of the key that a phrase has opened.
    private func otherKeys(_ found: FoundMarkers) -> RemoteError {
        let others = found.sealed.values.filter { $0.identifier != protection.held?.key.identifier }
            .sorted { $0.time > $1.time }.prefix(5)
        let names = others.map { "\($0.identifier) (made \(DayText.utc($0.time)))" }
        return RemoteError(
            .otherKeys,
            "The recovery phrase is right, but other keys are in the place too: \(names.joined(separator: ", ")). If you "
                + "have not made them, reject them.")
    }

    /// Refuses an account that a newer version of this service publishes in, before anything is changed for it.
    private func checkFormat(of heads: [BlobListing]) async throws(RemoteError) {
        let wrapping = try wrapping
        for listing in heads.prefix(Self.mostHeads) {
            let content = try await storage.get(
                "\(BlobName.heads)/\(listing.name)", limit: wrapping.headLimit, unless: nil)
            guard case .content(let bytes, _) = content else { continue }
            // What can't be read for another reason is named by the first pull.
            do throws(BlobFlaw) { _ = try wrapping.head(bytes) } catch {
                if error == .tooNew { throw RemoteError.tooNew }
                if error == .otherKey, protection.held == nil { throw RemoteError.keyNeeded }
            }
        }
    }

    /// Puts an account's marker into the place where it isn't there.
    public func restore(_ account: String) async throws(RemoteError) -> RemoteAccount {
        memory.account = nil
        memory.forgetMarkers()
        try checkOpen()
        if protection.move != nil { throw RemoteError.moving }
        guard let identifier = Bits128(account) else {
            throw RemoteError(.unsupported, "The account has an identifier that no folder can have.")
        }
        let bytes = try markerBytes(of: identifier)
        try await storage.check(makingPlace: true)
        var found = try await readMarkers()
        if found.areNone, !found.damaged.isEmpty { throw Self.damagedMarker }
        if protection.held == nil, !found.sealed.isEmpty { throw RemoteError.keyNeeded }
        if !found.isThere(identifier) {
            let failure = await failure { () throws(RemoteError) in
                try await storage.create(BlobName.marker(identifier), bytes)
            }
            found = try await readMarkers()
            // Another device may have done the same.
            if let failure, !found.isThere(identifier) { throw failure }
            if protection.held == nil { found.plain.insert(identifier) }
        }
        accountIdentifiers = []
        accountIdentifiers = try await choose(among: found, as: .opening)
        return Self.account(accountIdentifiers)
    }

    private func failure(_ body: () async throws(RemoteError) -> Void) async -> RemoteError? {
        do { try await body() } catch { return error }
        return nil
    }

    private func markerBytes(of identifier: Bits128) throws(RemoteError) -> [UInt8] {
        switch protection {
        case .none: return AccountMarker(identifier: identifier, time: environment.time()).encoded()
        case .key(let held) where Bits128(held.key.identifier) == identifier: return held.marker.bytes
        case .key, .phrase, .locked, .moving: throw RemoteError.keyNeeded
        }
    }

    /// The account as it is there now, for a pass.
    package func presentAccount() async throws(RemoteError) -> RemoteAccount {
        try await checkPlace()
        return try await markedAccount()
    }

    /// Looks whether the place is still there.
    func checkPlace() async throws(RemoteError) {
        try checkOpen()
        do { try await storage.check(makingPlace: false) } catch {
            // It was there when the account was opened: rather a drive that is not mounted than a wish to delete.
            throw error.code == .noAccount ? RemoteError(.unavailable, error.message) : error
        }
    }

    /// The account that the markers say is here.
    func markedAccount() async throws(RemoteError) -> RemoteAccount {
        memory.account = nil
        let identifiers: Set<Bits128>
        if let move = protection.move {
            identifiers = try await prepare(move)
        } else {
            let found = try await readMarkers(expecting: accountIdentifiers)
            identifiers = try await choose(among: found, as: .looking)
        }
        accountIdentifiers.formUnion(identifiers)
        let account = Self.account(identifiers)
        memory.account = account
        return account
    }

    private static func account(_ markers: Set<Bits128>, isNew: Bool = false) -> RemoteAccount {
        let identifiers = markers.sorted()
        return RemoteAccount(
            identifier: identifiers.first?.description ?? "",
            aliases: Set(identifiers.dropFirst().map(\.description)),
            isNew: isNew
        )
    }

    static var damagedMarker: RemoteError {
        RemoteError(.damaged, "The file that says which account is here is damaged or has not arrived whole.")
    }
}
