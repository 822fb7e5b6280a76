// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import Sealing

/// The result of reading a segment.
enum SegmentContent {
    case absent
    case damaged(String)
    case bytes([UInt8])
}

/// The segments in `s/`, as unencrypted bytes: which are present, which of them are known to be intact, and which have
/// to be read to find out.
final class SegmentFolder<Storage: BlobStorage> {
    private let storage: Storage
    private let account: BlobAccount<Storage>
    /// The names of the segments in the remote; `nil` once they have to be listed again.
    private var present: Set<Bits128>?
    /// The segments that this process has written, or read and found intact.
    private var good: Set<Bits128> = []
    /// The segments whose content did not match their name.
    private(set) var damaged: Set<Bits128> = []
    /// The segments that may have changed. They are read before they count as present.
    private var doubtful: Set<Bits128> = []
    /// The versions in the storage's last listing.
    private var versions: [Bits128: String] = [:]
    /// The lengths, in bytes, of the segments read or written since the last ``takeLengths()``.
    private var lengths: [Bits128: Int] = [:]
    /// Whether the folder holds more files than are listed.
    private(set) var isFull = false

    init(_ storage: Storage, of account: BlobAccount<Storage>) { (self.storage, self.account) = (storage, account) }

    // MARK: Names

    /// Lists the segments in the remote, except damaged ones.
    /// - Parameter expected: segments that count as present even unlisted, in a folder too full to be listed whole.
    func list(expecting expected: Set<Bits128>) async throws(RemoteError) -> Set<Bits128> {
        let listings = try await storage.list(BlobName.segments)
        isFull = BlobName.areTooMany(listings)
        noteVersions(of: listings)
        var names = Set(listings.compactMap { Bits128($0.name) })
        if isFull { names.formUnion(expected) }
        // A damaged segment counts as missing, so that a device that has its content writes it again.
        names.subtract(damaged)
        present = names
        return names
    }

    /// The same, but without listing them again if no other device has changed anything.
    func known(expecting expected: Set<Bits128>) async throws(RemoteError) -> Set<Bits128> {
        if let present { return present }
        return try await list(expecting: expected)
    }

    /// Forgets the names, so that they are listed again.
    func forgetNames() { present = nil }

    /// Marks segments as doubtful if the storage lists another version than before.
    private func noteVersions(of listings: [BlobListing]) {
        var versions: [Bits128: String] = [:]
        for listing in listings {
            guard let name = Bits128(listing.name), let version = listing.version else { continue }
            versions[name] = version
            if let before = self.versions[name], before != version { doubtful.insert(name) }
        }
        self.versions = versions
    }

    // MARK: Contents

    /// Reads a segment.
    func read(_ name: Bits128) async throws(RemoteError) -> SegmentContent {
        let wrapping = try account.wrapping
        switch try await storage.get(BlobName.segment(name), limit: wrapping.segmentLimit, unless: nil) {
        case .absent, .unchanged: return .absent
        case .unreadable(let clause): return .damaged("The file s/\(name) \(clause).")
        case .content(let bytes, _):
            guard let content = wrapping.content(of: bytes, named: name) else {
                damaged.insert(name)
                good.remove(name)
                return .damaged("The file s/\(name) is damaged.")
            }
            noteGood(name, bytes.count)
            return .bytes(content)
        }
    }

    /// Writes a segment, unless it is present and intact.
    func ensure(_ name: Bits128, _ bytes: [UInt8], isListed: Bool) async throws(RemoteError) {
        if isListed, try await areGood([name]) { return }
        try await storage.put(BlobName.segment(name), bytes)
        noteGood(name, bytes.count)
        versions[name] = nil
        present?.insert(name)
    }

    /// Whether segments are present and intact. Reads those of which this is not known.
    func areGood(_ names: [Bits128]) async throws(RemoteError) -> Bool {
        for name in names where !good.contains(name) {
            guard case .bytes = try await read(name) else { return false }
        }
        return true
    }

    private func noteGood(_ name: Bits128, _ length: Int) {
        good.insert(name)
        damaged.remove(name)
        lengths[name] = length
    }

    /// Returns the lengths, in bytes, of the segments read or written since the last call.
    func takeLengths() -> [Bits128: Int] {
        defer { lengths = [:] }
        return lengths
    }

    /// Forgets which segments are known to be intact, except these.
    func forget(besides named: Set<Bits128>) { good.formIntersection(named) }

    // MARK: Doubts

    /// Marks segments as doubtful, so that they are read before they count as present.
    func doubt(_ names: Set<Bits128>) { doubtful.formUnion(names) }

    var hasDoubts: Bool { !doubtful.isEmpty }

    /// Reads the doubtful ones among these segments. Afterwards no segment is doubtful.
    /// - Returns: whether they are intact.
    func verifyDoubtful(of names: Set<Bits128>) async throws(RemoteError) -> Bool {
        let names = names.intersection(doubtful)
        doubtful = []
        var areGood = true
        for name in names.sorted() {
            if case .bytes = try await read(name) { continue }
            areGood = false
            present?.remove(name)
        }
        return areGood
    }

    // MARK: Removing

    /// Removes a segment.
    func remove(_ name: Bits128) async throws(RemoteError) {
        present?.remove(name)
        try await storage.delete(BlobName.segment(name))
        good.remove(name)
    }

    /// Removes a segment if it is damaged. A device that needs it then finds it missing, and writes it again.
    func removeIfDamaged(_ name: Bits128) async throws(RemoteError) {
        present?.remove(name)
        guard case .damaged = try await read(name) else { return }
        damaged.remove(name)
        try await storage.delete(BlobName.segment(name))
    }
}
