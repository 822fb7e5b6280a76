// SPDX-License-Identifier: Apache-2.0

internal import Replication

/// Removes the files that `GarbageMemory` decides are no longer needed.
final class BlobGarbage<Storage: BlobStorage> {
    private let storage: Storage
    private let heads: HeadFolder<Storage>
    private let segments: SegmentFolder<Storage>
    private let own: OwnHead<Storage>
    private let environment: Environment
    private var memory = GarbageMemory()

    init(
        _ storage: Storage, _ heads: HeadFolder<Storage>, _ segments: SegmentFolder<Storage>, _ own: OwnHead<Storage>,
        _ environment: Environment
    ) {
        (self.storage, self.heads, self.segments, self.own) = (storage, heads, segments, own)
        self.environment = environment
    }

    /// The ages of files that nobody may need.
    var observations: Observations { memory.observations }

    /// Continues with the previous process's observations.
    func resume(_ observations: Observations) { memory.resume(observations) }

    /// Notes the heads that were last read.
    func noteHeads() { memory.note(heads.seen, time: environment.time()) }

    /// Notes that this device has removed its head under an origin.
    func noteRetired(_ origin: Origin) { memory.forget(origin.description) }

    /// Removes heads of devices that are gone or forgotten, segments that no head names, and files that a crash left
    /// half written.
    /// - Parameter news: what the last pull has joined, and what it could not read.
    func collect(
        _ request: GarbageCollection, of account: RemoteAccount, after news: JoinedNews
    ) async throws(RemoteError) {
        _ = try await heads.read(trustingVersions: true, as: request.origin)
        heads.forgetListed()
        let going = memory.look(
            at: try await remains(account), for: request, joined: news.heads, unread: news.unread,
            published: own.published?.seen)
        for head in going.heads where try await heads.remove(head) { memory.forget(head.name) }
        for name in going.segments { try await segments.remove(name) }
        for name in going.leftovers {
            if let segment = Bits128(String(name.dropFirst(BlobName.segments.count + 1))) {
                try await segments.removeIfDamaged(segment)
            } else {
                try await storage.delete(name)
            }
        }
        await sweep()
    }

    private func remains(_ account: RemoteAccount) async throws(RemoteError) -> Remains {
        var leftovers: Set<String> = []
        var names: Set<Bits128> = []
        for folder in [BlobName.markers, BlobName.heads, BlobName.segments] {
            for listing in try await storage.list(folder) {
                if BlobName.isTemporary(listing.name) { leftovers.insert("\(folder)/\(listing.name)") }
                guard folder == BlobName.segments, let name = Bits128(listing.name) else { continue }
                names.insert(name)
                if segments.damaged.contains(name) { leftovers.insert("\(folder)/\(listing.name)") }
            }
        }
        let found = heads.found.values.filter { account.isNamed($0.head.account.description) }
        let areAll = heads.hasFoundAll && found.count == heads.found.count && found.allSatisfy(\.isWhole)
        return Remains(
            heads: found.map(\.seen), unreadable: heads.unreadable, areAllHeads: areAll, segments: names,
            leftovers: leftovers)
    }

    /// Notes that this device's head names other segments than the one before, and removes those that may go.
    func noteReplaced(_ former: Set<Bits128>, by present: Set<Bits128>) async {
        noteLengths()
        memory.noteReplaced(former, by: present, time: environment.time())
        await sweep()
    }

    /// Removes the segments that this process has replaced and that may go. Ignores failures, because they do no harm.
    func sweep() async {
        guard memory.hasReplaced else { return }
        noteLengths()
        let names = memory.takeReplaced(
            environment.time(), heads: heads.seen, published: own.published?.seen, traits: storage.traits)
        for name in names {
            do { try await segments.remove(name) } catch { return }
        }
    }

    private func noteLengths() {
        for (name, length) in segments.takeLengths() { memory.noteLength(length, of: name) }
    }
}
