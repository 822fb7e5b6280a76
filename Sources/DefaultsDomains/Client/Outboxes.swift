// SPDX-License-Identifier: Apache-2.0

package import Files
package import PropertyList
internal import Synchronization

/// The outboxes of a process: what it puts into them, and removes once the service has it.
package final class Outboxes: Sendable {
    private struct Filling {
        /// Taken with the first write that is put into an outbox.
        var owner: OutboxOwner?
        /// When the writes were made that this process has put into outboxes, by domains.
        var times: [Text: [Outbox.Write.Target: Int64]] = [:]
        var isComplaintMade = false
    }

    private let directory: String?
    private let program: Text?
    /// Held while outboxes are changed, and longer than any other lock. It serializes the changes, because older writes
    /// must not replace newer ones.
    private let filling = Mutex(Filling())
    /// The domains whose outboxes may have writes of this process.
    private let filled = Mutex<Set<Text>>([])

    /// - Parameters:
    ///   - directory: the directory of the outboxes; `nil` if there is none.
    ///   - program: the path of this program, if it may have a domain of its own.
    package init(directory: String?, program: String? = nil) {
        self.directory = directory
        self.program = program.map { Text($0) }
    }

    /// Returns the file of a domain's outbox; `nil` if there is no directory.
    package func file(_ domain: Text) -> OutboxFile? { directory.map { OutboxFile(domain: domain, directory: $0) } }

    /// Whether a domain's outbox has writes that any process may deliver.
    package func hasAbandoned(_ domain: Text) -> Bool {
        guard let file = file(domain), file.exists else { return false }
        return !file.abandoned().isEmpty
    }

    /// Whether a domain's outbox may have writes of this process.
    package func isFilled(_ domain: Text) -> Bool { filled.withLock { $0.contains(domain) } }

    /// Makes the outboxes of domains hold what the service still lacks, and nothing else of this process.
    ///
    /// - Parameter pending: returns what the service lacks of a domain. It is asked again once that is in the outbox,
    ///   because the service may have taken some of it meanwhile.
    /// - Returns: whether all of it is in the outboxes.
    package func fill(_ domains: some Sequence<Text>, pending: (Text) -> [Outbox.Write]) -> Bool {
        filling.withLock { filling in
            domains.reduce(true) { isKept, domain in
                let isAdded = add(pending(domain), to: domain, &filling)
                try? update(domain, filling, pending)
                return isKept && isAdded
            }
        }
    }

    /// Makes the writes that this process has put into an outbox those that are pending now, and removes the others.
    /// - Throws: why the outbox is as it was; EWOULDBLOCK if another process keeps it locked.
    package func update(_ domain: Text, pending: (Text) -> [Outbox.Write]) throws(SystemError) {
        try filling.withLock { filling throws(SystemError) in try update(domain, filling, pending) }
    }

    private func add(_ writes: [Outbox.Write], to domain: Text, _ filling: inout Filling) -> Bool {
        if writes.isEmpty { return true }
        guard let directory, let file = file(domain) else {
            if !filling.isComplaintMade { logDefaults(Self.homeless) }
            filling.isComplaintMade = true
            return false
        }
        let owner = filling.owner.flatMap { $0.isSeen ? $0 : nil } ?? OutboxOwner(in: directory)
        filling.owner = owner
        _ = filled.withLock { $0.insert(domain) }
        let former = filling.times[domain] ?? [:]
        let isKept = file.add(writes.map { $0.owned(by: owner, program) }) { former[$0.target] == $0.time }
        if isKept { filling.times[domain] = Dictionary(writes.map { ($0.target, $0.time) }) { $1 } }
        return isKept
    }

    private static let homeless = """
        The service can't be reached, and there is no directory to keep settings in until it can: neither \
        XDG_STATE_HOME nor HOME names one, or the program is set-user-ID. They are lost when the program ends.
        """

    private func update(
        _ domain: Text, _ filling: Filling, _ pending: (Text) -> [Outbox.Write]
    ) throws(SystemError) {
        guard isFilled(domain), let owner = filling.owner, let file = file(domain) else { return }
        let pending = Dictionary(pending(domain).map { ($0.target, $0) }) { $1 }
        var isEmpty = true
        try file.update { write in
            guard write.owner == owner.number else { return write }
            guard var own = pending[write.target]?.owned(by: owner, program) else { return nil }
            isEmpty = false
            if own.value == write.value { own.time = write.time }
            return own
        }
        if isEmpty { _ = filled.withLock { $0.remove(domain) } }
    }
}

extension Outbox.Write {
    fileprivate func owned(by owner: OutboxOwner, _ program: Text?) -> Self {
        var write = self
        (write.owner, write.program) = (owner.number, program)
        return write
    }
}
