// SPDX-License-Identifier: Apache-2.0

package import PropertyList
internal import Synchronization

/// The outboxes of a process: what it puts into them, and removes once the service has it.
package final class Outboxes: Sendable {
    private let directory: String?
    /// Held while outboxes are changed, and longer than any other lock. It serializes the changes, because older writes
    /// must not replace newer ones.
    private let filling = Mutex(Complaint())
    private struct Complaint { var isMade = false }
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
        filling.withLock { complaint in
            domains.reduce(true) { isFilled, domain in
                let writes = writes(domain)
                if writes.isEmpty { return isFilled }
                guard let file = file(domain) else {
                    if !complaint.isMade { logDefaults(Self.homeless) }
                    complaint.isMade = true
                    return false
                }
                guard file.add(writes) else { return false }
                boxed.withLock { boxed in
                    let targets = Set(writes.map(\.target))
                    boxed[domain] = boxed[domain, default: []].filter { !targets.contains($0.target) } + writes
                }
                // The service may have taken some of them meanwhile.
                remove(from: domain, allBut: pending(domain))
                return isFilled
            }
        }
    }

    private static let homeless = """
        The service can't be reached, and there is no directory to keep settings in until it can: neither \
        XDG_STATE_HOME nor HOME names one, or the program is set-user-ID. They are lost when the program ends.
        """

    /// Removes the writes that this process has put into an outbox and that are no longer pending.
    package func removeTaken(_ domain: Text, pending: () -> [Outbox.Write]) {
        filling.withLock { _ in remove(from: domain, allBut: pending()) }
    }

    private func remove(from domain: Text, allBut pending: [Outbox.Write]) {
        let pending = Dictionary(grouping: pending, by: \.target)
        let taken = boxed.withLock { boxed in
            var writes = boxed[domain] ?? []
            let first = writes.partition { write in
                pending[write.target]?.contains { $0.value == write.value } != true
            }
            boxed[domain] = Array(writes[..<first])
            return Array(writes[first...])
        }
        if !taken.isEmpty { file(domain)?.remove(taken) }
    }

    /// Takes note of an outbox's delivery.
    /// - Returns: the writes that this process had put into the outbox and that are gone from it.
    package func delivered(_ domain: Text) -> [Outbox.Write] {
        guard hasBoxed(domain), let file = file(domain) else { return [] }
        let left = Dictionary(grouping: file.read()?.writes ?? [], by: \.target)
        return boxed.withLock { boxed in
            var writes = boxed[domain] ?? []
            let first = writes.partition { left[$0.target]?.contains($0) != true }
            boxed[domain] = Array(writes[..<first])
            return Array(writes[first...])
        }
    }
}
