// SPDX-License-Identifier: Apache-2.0

package import Replication

extension EtcdBackend {
    /// Finds out what is new since a cursor.
    package func pull(
        after cursor: [UInt8]?, as origin: Origin, published count: UInt64
    ) async throws(RemoteError) -> any RemotePull {
        try checkOpen()
        // A device that has left an origin has forgotten what it joined under it, so it reads everything again.
        let hasLeft = Rule.readAnew.isOn && memory.origin.map { $0 != origin } ?? false
        var base = base(hasLeft ? nil : cursor)
        var look = try await look(since: base?.revision ?? 0, origin)
        memory.needsRepublication = memory.needsRepublication || base?.needsRepublication == true
        let tokens = [base?.token, memory.lastToken].compactMap(\.self)
        // Either much has happened, or the cluster was restored from a backup and has lost later writes.
        let isLost = !tokens.allSatisfy(look.isKnown)
        memory.needsRepublication = memory.needsRepublication || isLost
        if let known = base, isLost || look.isElsewhere(known) {
            (memory.joined, memory.outlines, base) = (nil, EtcdOutlines(), nil)
            look = try await self.look(since: 0, origin)
        }
        watch.follow(client.member, after: look.revision)
        let own = memory.look(at: look.own, under: origin, published: count)
        return EtcdPull(self, origin, base, look, ownPublication: own, devices: names)
    }

    /// Returns where to start: at the cursor, or at the later position that this process has reached since.
    private func base(_ cursor: [UInt8]?) -> EtcdCursor? {
        var base = cursor.flatMap { EtcdCursor(decoding: $0) }
        if let joined = memory.joined, cursor != nil, cursor == memory.cursor {
            base?.revision = joined.revision
            base?.token = joined.token
            base?.needsRepublication = memory.needsRepublication
        } else {
            (memory.joined, memory.outlines) = (nil, EtcdOutlines())
        }
        return base
    }

    private var names: [Origin: RemoteDevice] { memory.devices?.mapValues { $0.device } ?? [:] }

    private func look(since revision: Int64, _ origin: Origin) async throws(RemoteError) -> EtcdPoll {
        let ranges = EtcdPoll.ranges(since: revision, hasDevices: memory.devices != nil, as: origin, layout)
        let outcome = try await client.commit(EtcdTransaction(operations: ranges.map { .range($0) }))
        let position = try row.present(outcome.found[0], outcome.revision)
        memory.note(devices: outcome.found[2].rows, layout)
        return try EtcdPoll(outcome, at: position, layout)
    }

    static let corrupt = RemoteError(.unavailable, "The cluster's answer is invalid.")

    /// Reads a store for a pull.
    func read(
        _ store: String, since revision: Int64, after known: EtcdPosition
    ) async throws(RemoteError) -> EtcdReader.Reading {
        try await reader.read(store, since: revision, after: known)
    }

    /// Notes up to where everything is joined, and returns the cursor.
    func keep(
        _ look: EtcdPoll, _ origin: Origin, _ joined: Set<String>, _ wholes: EtcdOutlines, _ deltas: EtcdOutlines,
        missing: Set<String>
    ) -> [UInt8] {
        reader.forgetNews()
        return memory.note(look, origin, joined: joined, wholes, deltas, missing: missing)
    }
}
