// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
package import Replication

extension EtcdBackend {
    /// Begins to upload this device's state.
    package func push(_ publication: Publication) async throws(RemoteError) -> any RemotePush {
        try checkOpen()
        var start = memory.joined
        if start == nil { start = try await present(publication) }
        guard start?.account.remote.isNamed(publication.account) == true else { throw Self.otherAccount }
        let stores = publication.stores.filter { $0.sequence != $0.published || memory.needsRepublication }
        return EtcdPush(self, publication, stores: stores.map(\.identifier))
    }

    static let otherAccount = RemoteError(
        .reset, "There is another account here than the one that is signed in.")

    /// Reads the account's position before a publication.
    func present(_ publication: Publication) async throws(RemoteError) -> EtcdPosition {
        let outcome = try await client.commit(EtcdTransaction(operations: present(publication)))
        return try present(publication, outcome)
    }

    private func present(_ publication: Publication) -> [EtcdOperation] {
        [.range(EtcdRange(layout.account)), .range(EtcdRange(layout.device(publication.origin)))]
    }

    /// Checks the account and this device's row. A clone's publication must not be replaced before a pull has seen it.
    private func present(_ publication: Publication, _ outcome: EtcdOutcome) throws(RemoteError) -> EtcdPosition {
        let position = try row.present(outcome.found[0], outcome.revision)
        guard position.account.remote.isNamed(publication.account) else { throw Self.otherAccount }
        if memory.hasLooked(under: publication.origin), let row = outcome.found[1].rows.first,
            let device = try? EtcdDevice(decoding: row.value), !memory.isOwn(device, under: publication.origin)
        {
            throw RemoteError(
                .unavailable, "A clone publishes under this device's origin, which the next poll replaces.")
        }
        return position
    }

    /// Joins stores to the cluster's state of them.
    /// - Parameter isLast: whether they are the last of the publication, so that the device's row follows.
    func publish(
        _ publication: Publication, _ snapshots: [StoreSnapshot], isLast: Bool
    ) async throws(RemoteError) {
        try checkOpen()
        let needsRepublication = memory.needsRepublication
        var publishing = EtcdPublishing(
            publication, snapshots, isLast: isLast, number: environment.random(), layout, limits)
        if isLast {
            memory.note(publishing.device, under: publication.origin)
            publishing.formerOrigins = formerOrigins(of: publication)
        }
        if let joined = memory.joined, memory.origin == publication.origin {
            publishing.begin(at: joined, outlines: memory.outlines.byStore)
        } else {
            publishing.begin(at: try await present(publication))
        }
        for attempt in 1...EtcdPublishing.mostAttempts {
            try await plan(&publishing)
            while !publishing.isDone, try await commitNext(&publishing) {}
            if publishing.isDone { return didPublish(publishing, paying: needsRepublication && isLast) }
            // Another device was faster. The more often that happens, the more devices are writing.
            let spread = UInt64(min(attempt, 6)) * 5
            await client.pause(for: .milliseconds(Int64(environment.random() % spread)))
        }
        throw RemoteError(
            .unavailable, "Other devices changed the account each time that this one tried to write to it.")
    }

    /// The former origins whose device rows may go: those without a later publication, which a clone would have made.
    private func formerOrigins(of publication: Publication) -> [Origin] {
        let former = publication.formerOrigins.filter { origin in
            guard origin != publication.origin, let device = memory.devices?[origin] else { return false }
            return device.count <= publication.counts[origin, default: 0]
        }
        return Array(former.prefix(32))
    }

    /// Decides on the steps for each undecided store, and writes the parts of large values.
    private func plan(_ publishing: inout EtcdPublishing) async throws(RemoteError) {
        for store in publishing.undecided {
            publishing.take(try await reader.read(store, after: publishing.position).state, of: store)
        }
        publishing.order()
        for part in publishing.parts {
            _ = try await client.commit(EtcdTransaction(operations: [part]))
        }
    }

    /// Commits the next transaction.
    /// - Returns: whether it was applied; if not, others have changed something.
    private func commitNext(_ publishing: inout EtcdPublishing) async throws(RemoteError) -> Bool {
        let token = environment.random()
        let (transaction, account, count) = publishing.next(token: token, otherwise: present(publishing.publication))
        watch.ignore(token)
        let outcome = try await client.commit(transaction)
        if outcome.isDone {
            publishing.advance(count, to: EtcdPosition(account, outcome.revision))
            memory.lastToken = token
            return true
        }
        let position = try present(publishing.publication, outcome)
        // The transaction was applied, and the response to it was lost.
        if position.account == account {
            publishing.advance(count, to: position)
            memory.lastToken = token
            return true
        }
        publishing.begin(at: position)
        return false
    }

    private func didPublish(_ publishing: EtcdPublishing, paying needsRepublication: Bool) {
        for origin in publishing.formerOrigins { memory.devices?[origin] = nil }
        if needsRepublication { memory.needsRepublication = false }
        // The cluster now has exactly what this device has joined and written.
        guard let outlines = publishing.publishedOutlines else { return }
        memory.joined = publishing.position
        for (store, outline) in outlines { memory.outlines[store] = outline }
    }

    // MARK: Garbage collection

    /// Removes the rows of devices that were forgotten, and parts of values that no entry needs any more.
    package func collectGarbage(_ request: GarbageCollection) async throws(RemoteError) {
        try checkOpen()
        let position = try await row.present()
        guard position.account.remote.isNamed(request.account) else { throw Self.otherAccount }
        let forgotten = request.forgottenOrigins.subtracting([request.origin]).filter { memory.devices?[$0] != nil }
        for origin in forgotten.sorted() {
            _ = try await client.commit(EtcdTransaction(operations: [.delete(layout.device(origin))]))
            memory.devices?[origin] = nil
        }
        try await removeParts(position)
    }

    /// Removes parts that no entry has. A device that is about to write the entry finds that they are gone, and writes
    /// them again.
    private func removeParts(_ position: EtcdPosition) async throws(RemoteError) {
        let parts = try await client.range(EtcdRange(under: layout.parts, keysOnly: true)).rows.rows
        if parts.isEmpty { return }
        let stores = Set(parts.compactMap { layout.storeOfPart($0) })
        var needed: Set<[UInt8]> = []
        for store in stores {
            let state = try await reader.read(store, after: position).state
            needed.formUnion(state.entries.values.map { layout.parts(store, $0.dot) })
        }
        for part in parts where !needed.contains(EtcdLayout.entry(ofPart: part)) {
            _ = try await client.commit(
                EtcdTransaction(
                    conditions: [.value(layout.account, is: position.row)], operations: [.delete(part.key)]))
        }
    }
}
