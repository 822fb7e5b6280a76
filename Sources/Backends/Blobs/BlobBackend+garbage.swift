// SPDX-License-Identifier: Apache-2.0

public import Replication
internal import Sealing

extension BlobBackend {
    /// Removes heads of devices that are gone or forgotten, segments that no head names, and files that a crash left
    /// half written.
    public func collectGarbage(_ request: GarbageCollection) async throws(RemoteError) {
        if protection.move != nil { throw RemoteError.moving }
        let account = try await presentAccount()
        guard account.isNamed(request.account) else {
            throw RemoteError(.reset, "There is another account here than the one that is signed in.")
        }
        _ = try await readHeads(believing: true, as: request.origin)
        memory.listed = nil
        let going = memory.garbage.look(
            at: try await remains(account), for: request, joined: memory.joinedHeads,
            published: memory.published?.seen)
        for head in going.heads { try await remove(head) }
        for name in going.segments {
            try await storage.delete(BlobName.segment(name))
            memory.goodSegments.remove(name)
            memory.segments?.remove(name)
        }
        for name in going.leftovers { try await removeLeftover(name) }
        await sweep()
    }

    private func remains(_ account: RemoteAccount) async throws(RemoteError) -> Remains {
        var leftovers: Set<String> = []
        var segments: Set<Bits128> = []
        for folder in [BlobName.markers, BlobName.heads, BlobName.segments] {
            for listing in try await storage.list(folder) {
                if BlobName.isTemporary(listing.name) { leftovers.insert("\(folder)/\(listing.name)") }
                guard folder == BlobName.segments, let name = Bits128(listing.name) else { continue }
                segments.insert(name)
                if memory.damagedSegments.contains(name) { leftovers.insert("\(folder)/\(listing.name)") }
            }
        }
        let heads = memory.found.values.filter { account.isNamed($0.head.account.description) }
        let areAll = memory.hasFoundAll && heads.count == memory.found.count && heads.allSatisfy(\.isWhole)
        return Remains(
            heads: heads.map(\.seen), areAllHeads: areAll, segments: segments, leftovers: leftovers)
    }

    /// Removes a file that is not whole, or a segment that is damaged: whoever needs that finds it missing then, and
    /// puts it there again.
    private func removeLeftover(_ name: String) async throws(RemoteError) {
        if let segment = Bits128(String(name.dropFirst(BlobName.segments.count + 1))) {
            memory.segments?.remove(segment)
            guard case .damaged = try await readSegment(segment) else { return }
            memory.damagedSegments.remove(segment)
        }
        try await storage.delete(name)
    }

    /// Removes another device's head, unless it was written anew since it was read.
    private func remove(_ head: SeenHead) async throws(RemoteError) {
        let name = "\(BlobName.heads)/\(head.name)"
        let content = try await storage.get(name, limit: try wrapping.headLimit, unless: nil)
        guard case .content(let bytes, _) = content, Head.digest(of: bytes) == head.digest else { return }
        try await storage.delete(name)
        memory.found[head.name] = nil
        memory.garbage.forget(head.name)
    }

    /// Removes what this process has put others in the place of. Not worth a failure.
    func sweep() async {
        guard memory.garbage.hasReplaced else { return }
        let names = memory.garbage.takeReplaced(
            environment.time(), heads: memory.found.values.map(\.seen), published: memory.published?.seen,
            traits: traits)
        for name in names {
            memory.segments?.remove(name)
            do { try await storage.delete(BlobName.segment(name)) } catch { return }
            memory.goodSegments.remove(name)
        }
    }
}
