// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
import Blobs
import Foundation
import PropertyList
import Replication
import Sealing
import StoreEngine
import SyncEngine
import UbiquitousStoreTesting

@testable import Folder

/// Every write that was ever visible in a folder, by its dot. No dot may name two writes.
struct DotLedger {
    private struct Name: Hashable {
        let store: String
        let dot: Dot
    }

    private struct Write: Equatable {
        let key: Key
        let value: [UInt8]?
    }

    private var writes: [Name: Write] = [:]
    /// How the folder's account is protected.
    private let protection: Protection

    /// - Parameter phrase: the phrase of the folder's account; `nil` if it isn't encrypted.
    init(phrase: String?) throws {
        protection = try phrase.map { .phrase(try RecoveryPhrase(reading: $0)) } ?? .none
    }

    /// The dots that name two writes.
    private(set) var doubles: [Dot] = []

    /// Takes in what a folder contained whenever a head in it got its name.
    /// - Parameter count: how many of the journal's operations count.
    mutating func note(_ folder: String, in journal: DiskJournal, count: Int) async throws {
        for (index, record) in journal.records.prefix(count).enumerated() {
            guard case .rename(_, let target) = record.operation, target.hasPrefix(folder + "/h/") else { continue }
            let copy = try TemporaryDirectory()
            let place = try copy.makeDirectory("folder", mode: 0o700)
            try DiskImage(journal, count: index + 1).write(folder, to: place, loss: .none)
            try await note(place)
        }
    }

    /// Takes in what a folder contains.
    /// - Returns: the values of a store, by their keys, as a new device would see them.
    @discardableResult
    mutating func note(_ folder: String, store wanted: String = notes) async throws -> [Key: Value] {
        let storage = FolderStorage(try FolderURL("folder://\(folder)"), access: .own(uid: geteuid()), watch: nil)
        let backend = BlobBackend(storage: storage, environment: .system, protection: protection)
        _ = try await backend.open(creatingAccount: false)
        let pull = try await backend.pull(after: nil, as: Origin(bits: 1))
        var values: [Key: Value] = [:]
        for store in pull.stores {
            for (key, entry) in try await pull.change(of: store).states.state.entries {
                note(Name(store: store, dot: entry.dot), Write(key: key, value: entry.value))
                if store == wanted, let bytes = entry.value { values[key] = try Value(encoded: bytes) }
            }
        }
        await backend.close()
        return values
    }

    private mutating func note(_ name: Name, _ write: Write) {
        if let known = writes[name], known != write { doubles.append(name.dot) }
        writes[name] = write
    }
}
