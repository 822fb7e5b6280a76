// SPDX-License-Identifier: Apache-2.0

package import PropertyList
package import SDBus
package import UbiquitousStore

/// Delivers to the service what processes left in a domain's outbox when they ended. A key that changed since stays as
/// it is.
@BusActor
package struct OutboxDelivery {
    private let domain: Text
    private let file: OutboxFile?
    private let connection: ServiceConnection
    private let waits: Bool
    private let storeChanged: () async -> Void

    /// - Parameters:
    ///   - waits: whether to wait, for up to two seconds, until the outbox is empty: for another process's delivery, and
    ///     for processes that run to send what they have put there.
    ///   - storeChanged: is called when values have been delivered to the store of the keys that roam.
    package init(
        domain: Text, from outboxes: Outboxes, over connection: ServiceConnection, waiting waits: Bool = false,
        storeChanged: @escaping () async -> Void = {}
    ) {
        (self.domain, self.connection, self.waits) = (domain, connection, waits)
        file = outboxes.file(domain)
        self.storeChanged = storeChanged
    }

    /// Delivers the outbox. What the service doesn't answer stays for the next time.
    package func run() async {
        guard let file else { return }
        let end = EventLoop.now + 2_000_000
        while file.exists {
            if await deliverAbandoned(file) { return }
            guard waits, EventLoop.now < end else { return }
            try? await Task.sleep(for: .milliseconds(20))
        }
    }

    /// - Returns: whether the service did not answer, so that there is nothing to wait for.
    private func deliverAbandoned(_ file: OutboxFile) async -> Bool {
        guard let right = file.delivery() else { return false }
        defer { extendLifetime(right) }
        for (target, writes) in Dictionary(grouping: file.abandoned(), by: { OutboxTarget($0, of: domain) }) {
            do {
                try await deliver(writes, to: target)
                file.remove(writes)
                if target.store != nil { await storeChanged() }
            } catch {
                // The writes stay for the next time.
                return true
            }
        }
        return false
    }

    private func deliver(_ writes: [Outbox.Write], to target: OutboxTarget) async throws {
        var rest = [writes[...]]
        var lost: [Text] = []
        var reason: UbiquitousStoreError?
        while let part = rest.popLast() {
            do {
                try await (part.count == 1 ? Patience() : .none).call {
                    try await connection.deliver(Array(part), to: target)
                }
            } catch let error as UbiquitousStoreError where error.isRefusal {
                // In halves, only those fail in the end that the service refuses by themselves. It will never take them.
                let middle = (part.startIndex + part.endIndex) / 2
                if part.count > 1 {
                    rest += [part[middle...], part[..<middle]]
                    continue
                }
                reason = reason ?? error
                lost += part.map(\.key)
                if error.isRefusalOfAll {
                    lost += rest.flatMap { $0.map(\.key) }
                    rest = []
                }
            }
        }
        guard let reason else { return }
        let verb = lost.count == 1 ? "was not stored and is" : "were not stored and are"
        logDefaults(lost, "of \(target.name) \(verb) lost: \(reason)")
    }
}
