// SPDX-License-Identifier: Apache-2.0

package import PropertyList
internal import Synchronization

/// The outboxes of a process: what it puts into them, and takes out again once the service has it.
package final class Outboxes: Sendable {
    private let directory: String?
    /// Held while outboxes are changed, and longer than any other lock. One at a time: what is older must not be
    /// written over what is newer.
    private let filling = Mutex(())
    /// What this process has put in and not seen in the service since.
    private let boxed = Mutex<[Text: [Outbox.Write]]>([:])

    /// - Parameter directory: where they are; `nil`: there is no place for them.
    package init(directory: String?) {
        self.directory = directory
    }

    /// The file of a domain's outbox.
    package func file(_ domain: Text) -> OutboxFile? { directory.map { OutboxFile(domain: domain, directory: $0) } }

    /// Whether this process has put something into an outbox that it has not seen in the service since.
    package func hasBoxed(_ domain: Text) -> Bool { boxed.withLock { $0[domain]?.isEmpty == false } }

    /// Puts writes into the outboxes of domains.
    ///
    /// - Parameters:
    ///   - writes: what is to go into a domain's.
    ///   - pending: what the service still hasn't of a domain once they are there.
    /// - Returns: whether all of them are there.
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

    /// Takes out what this process has put in and is no longer pending.
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

    /// An outbox has been delivered.
    /// - Returns: what this process had put in and is in it no longer.
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
    /// Whether both are of the same key.
    fileprivate func isAbout(_ other: Self) -> Bool {
        key == other.key && isHost == other.isHost && store == other.store
    }

    /// Whether both make the same of it.
    fileprivate func isSame(as other: Self) -> Bool { isAbout(other) && value == other.value }
}
