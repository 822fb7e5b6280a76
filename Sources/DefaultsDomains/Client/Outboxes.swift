// SPDX-License-Identifier: Apache-2.0

package import PropertyList
internal import Synchronization

/// The outboxes of a process: what it puts into them, and removes once the service has it.
package final class Outboxes: Sendable {
    private let directory: String?
    /// Held while outboxes are changed, and longer than any other lock. It serializes the changes, because older writes
    /// must not replace newer ones.
    private let filling = Mutex(())
    /// What this process has put into outboxes and not seen in the service since.
    private let boxed = Mutex<[Text: [Outbox.Write]]>([:])

    /// - Parameter directory: the directory of the outboxes; `nil` if there is none.
    package init(directory: String?) {
        self.directory = directory
    }

    /// Returns the file of a domain's outbox; `nil` if there is no directory.
    package func file(_ domain: Text) -> OutboxFile? { directory.map { OutboxFile(domain: domain, directory: $0) } }

    /// Whether this process has put writes into a domain's outbox that it has not seen in the service since.
    package func hasBoxed(_ domain: Text) -> Bool { boxed.withLock { $0[domain]?.isEmpty == false } }

    /// Puts writes into the outboxes of domains.
    ///
    /// - Parameters:
    ///   - writes: returns the writes for a domain's outbox.
    ///   - pending: returns what the service still lacks of a domain, once the writes are in the outbox.
    /// - Returns: whether all writes are in the outboxes.
    package func fill(
        _ domains: some Sequence<Text>, writes: (Text) -> [Outbox.Write], pending: (Text) -> [Outbox.Write]
    ) -> Bool {
        filling.withLock { _ in
            domains.reduce(true) { isFilled, domain in
                let writes = writes(domain)
                if writes.isEmpty { return isFilled }
                guard let file = file(domain), file.add(writes) else { return false }
                boxed.withLock { boxed in
                    let others = boxed[domain, default: []].filter { old in !writes.contains { $0.isAbout(old) } }
                    boxed[domain] = others + writes
                }
                // The service may have taken some of them meanwhile.
                remove(from: domain, allBut: pending(domain))
                return isFilled
            }
        }
    }

    /// Removes the writes that this process has put into an outbox and that are no longer pending.
    package func removeTaken(_ domain: Text, pending: () -> [Outbox.Write]) {
        filling.withLock { _ in remove(from: domain, allBut: pending()) }
    }

    private func remove(from domain: Text, allBut pending: [Outbox.Write]) {
        let taken = boxed.withLock { boxed in
            let writes = boxed[domain] ?? []
            boxed[domain] = writes.filter { write in pending.contains { $0.isSame(as: write) } }
            return writes.filter { write in !pending.contains { $0.isSame(as: write) } }
        }
        if !taken.isEmpty { file(domain)?.remove(taken) }
    }

    /// Takes note of an outbox's delivery.
    /// - Returns: the writes that this process had put into the outbox and that are gone from it.
    package func delivered(_ domain: Text) -> [Outbox.Write] {
        guard hasBoxed(domain), let file = file(domain) else { return [] }
        let left = file.read()?.writes ?? []
        return boxed.withLock { boxed in
            let gone = boxed[domain, default: []].filter { !left.contains($0) }
            boxed[domain]?.removeAll { !left.contains($0) }
            return gone
        }
    }
}

extension Outbox.Write {
    /// Whether both writes are to the same key.
    fileprivate func isAbout(_ other: Self) -> Bool {
        key == other.key && isHost == other.isHost && store == other.store
    }

    /// Whether both writes give the same key the same value.
    fileprivate func isSame(as other: Self) -> Bool { isAbout(other) && value == other.value }
}
