// SPDX-License-Identifier: Apache-2.0

public import Replication

extension BlobBackend {
    /// Removes heads of devices that are gone or forgotten, segments that no head names, and files that a crash left
    /// half written.
    public func collectGarbage(_ request: GarbageCollection) async throws(RemoteError) {
        let account = try await presentAccount()
        guard account.isNamed(request.account) else {
            throw RemoteError(.reset, "There is another account here than the one that is signed in.")
        }
        _ = try await readHeads(believing: true, as: request.origin)
        memory.listed = nil
        let heads = memory.found.values.filter {
            account.isNamed($0.head.account.description) && $0.head.origin != request.origin
        }
        let (segments, leftovers) = try await unnamedBlobs(account)
        memory.observations.look(
            request.time, heads: Set(heads.map(\.digest)), segments: segments, leftovers: leftovers)
        try await removeHeads(heads.map(seen), request)
        for name in Garbage.segments(ages: memory.observations.segments) {
            try await storage.delete(BlobName.segment(name))
            memory.goodSegments.remove(name)
            memory.segments?.remove(name)
        }
        for name in Garbage.leftovers(ages: memory.observations.leftovers) { try await removeLeftover(name) }
        await sweep()
    }

    /// The segments that no head names, and files that are not whole.
    private func unnamedBlobs(_ account: RemoteAccount) async throws(RemoteError) -> (Set<Bits128>, Set<String>) {
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
        // A head that can't be read, or is of another account, names nobody knows what.
        let isKnown = memory.found.values.allSatisfy { $0.isWhole && account.isNamed($0.head.account.description) }
        guard isKnown, memory.hasFoundAll else { return ([], leftovers) }
        for found in memory.found.values where Rule.namedSegments.isOn {
            segments.subtract(found.head.segmentNames)
        }
        segments.subtract(memory.published?.head.segmentNames ?? [])
        return (segments, leftovers)
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

    private func seen(_ found: FoundHead) -> Garbage.SeenHead {
        // What was read after the pull was not joined; of what was joined, all has to be where others find it.
        let isJoined = memory.joinedHeads.contains(found.digest) || !found.isWhole
        let isDominated = isJoined && memory.published?.head.dominates(found.head) == true
        return Garbage.SeenHead(
            name: found.name, digest: found.digest, origin: found.head.origin, isWhole: found.isWhole,
            isDominated: isDominated)
    }

    private func removeHeads(_ heads: [Garbage.SeenHead], _ request: GarbageCollection) async throws(RemoteError) {
        let going = Garbage.heads(
            heads, own: request.origin, forgotten: request.forgottenOrigins, ages: memory.observations.heads)
        for head in going {
            let name = "\(BlobName.heads)/\(head.name)"
            // It may have been written anew since it was read.
            let content = try await storage.get(name, limit: try wrapping.headLimit, unless: nil)
            guard case .content(let bytes, _) = content, Head.digest(of: bytes) == head.digest else { continue }
            try await storage.delete(name)
            memory.found[head.name] = nil
            memory.latest.forget(head.name)
        }
    }

    /// Removes what this process has put others in the place of. Not worth a failure.
    func sweep() async {
        if memory.superseded.isEmpty { return }
        let published = memory.published?.head.segmentNames ?? []
        let own = memory.published?.head.origin
        let others = memory.found.values.filter { $0.head.origin != own }
        let named = memory.latest.segmentNames(besides: own).union(others.flatMap(\.head.segmentNames))
        for name in memory.superseded.take(
            environment.time(), published: published, named: Rule.namedSegments.isOn ? named : []
        ) {
            memory.segments?.remove(name)
            do { try await storage.delete(BlobName.segment(name)) } catch { return }
            memory.goodSegments.remove(name)
        }
    }
}
