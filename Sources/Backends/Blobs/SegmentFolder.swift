// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import Sealing

/// What is under a segment's name.
enum SegmentContent {
    case absent
    case damaged(String)
    case bytes([UInt8])
}

/// What lies in `s/`, as bytes in plain: which segments are there, which of them are good, and which have to be read
/// before that can be said.
final class SegmentFolder<Storage: BlobStorage> {
    private let storage: Storage
    private let account: BlobAccount<Storage>
    /// The segments that are there, as long as nobody else was seen to do anything.
    private var present: Set<Bits128>?
    /// Those whose content this process has seen to be right.
    private var good: Set<Bits128> = []
    /// Those whose content was another than their name says.
    private(set) var damaged: Set<Bits128> = []
    /// Those that may not be what was written any more: they are read before they count as being there.
    private var doubtful: Set<Bits128> = []
    /// The versions that the storage listed last.
    private var versions: [Bits128: String] = [:]
    /// How long those are that were read or written and not asked for since.
    private var lengths: [Bits128: Int] = [:]
    /// It holds more than is listed.
    private(set) var isFull = false

    init(_ storage: Storage, of account: BlobAccount<Storage>) { (self.storage, self.account) = (storage, account) }

    // MARK: Names

    /// The names of the segments that are there.
    /// - Parameter expected: those that count as there where so much is there that not all is listed.
    func list(expecting expected: Set<Bits128>) async throws(RemoteError) -> Set<Bits128> {
        let listings = try await storage.list(BlobName.segments)
        isFull = BlobName.areTooMany(listings)
        noteVersions(of: listings)
        var names = Set(listings.compactMap { Bits128($0.name) })
        if isFull { names.formUnion(expected) }
        // What is damaged is as good as missing: it is written again by whoever has its content.
        names.subtract(damaged)
        present = names
        return names
    }

    /// The same, without looking if nobody else has done anything since the last look.
    func known(expecting expected: Set<Bits128>) async throws(RemoteError) -> Set<Bits128> {
        if let present { return present }
        return try await list(expecting: expected)
    }

    /// Has the names listed anew.
    func forgetNames() { present = nil }

    /// Doubts segments of which the storage lists another version than before.
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

    /// Sees to it that a segment is there, and whole.
    func ensure(_ name: Bits128, _ bytes: [UInt8], isListed: Bool) async throws(RemoteError) {
        if isListed, try await areGood([name]) { return }
        try await storage.put(BlobName.segment(name), bytes)
        noteGood(name, bytes.count)
        versions[name] = nil
        present?.insert(name)
    }

    /// Whether segments are there, and whole.
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

    /// How long the segments are that were read or written since this was asked last.
    func takeLengths() -> [Bits128: Int] {
        defer { lengths = [:] }
        return lengths
    }

    /// Forgets which are good, but for these.
    func forget(besides named: Set<Bits128>) { good.formIntersection(named) }

    // MARK: Doubts

    /// Has segments read before they count as being there.
    func doubt(_ names: Set<Bits128>) { doubtful.formUnion(names) }

    var hasDoubts: Bool { !doubtful.isEmpty }

    /// Reads those of segments that are in doubt; no others are after that.
    /// - Returns: whether they are what was written.
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

    /// Removes a segment if it is damaged: whoever needs it finds it missing then, and puts it there again.
    func removeIfDamaged(_ name: Bits128) async throws(RemoteError) {
        present?.remove(name)
        guard case .damaged = try await read(name) else { return }
        damaged.remove(name)
        try await storage.delete(BlobName.segment(name))
    }
}
