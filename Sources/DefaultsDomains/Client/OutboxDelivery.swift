// SPDX-License-Identifier: Apache-2.0

package import PropertyList
package import SDBus
package import UbiquitousStore

/// Delivers to the service what processes left in a domain's outbox. A key that changed since stays as it is.
@BusActor
package struct OutboxDelivery {
    private let domain: Text
    private let outboxes: Outboxes
    private let connection: ServiceConnection
    private let waits: Bool
    private let storeChanged: () async -> Void

    /// - Parameters:
    ///   - waits: whether to wait for another process's delivery, even if this process has put nothing there.
    ///   - storeChanged: is called when values have been delivered to the store of the keys that roam.
    package init(
        domain: Text, from outboxes: Outboxes, over connection: ServiceConnection, waiting waits: Bool = false,
        storeChanged: @escaping () async -> Void = {}
    ) {
        (self.domain, self.outboxes, self.connection, self.waits) = (domain, outboxes, connection, waits)
        self.storeChanged = storeChanged
    }

    /// Delivers the outbox. What the service doesn't answer stays for the next time.
    package func run() async {
        guard let file = outboxes.file(domain), file.exists, let right = await right(to: file),
            let outbox = file.read()
        else { return }
        defer { extendLifetime(right) }
        for (target, writes) in Dictionary(grouping: outbox.writes, by: { OutboxTarget($0, of: domain) }) {
            do {
                try await deliver(writes, to: target)
                file.remove(writes)
                if target.store != nil { await storeChanged() }
            } catch {
                // The writes stay for the next time.
            }
        }
    }

    /// Returns the right to deliver. If this process has put writes into the outbox, waits up to two seconds for
    /// another process's delivery, so that what is read from the service next includes them.
    private func right(to file: OutboxFile) async -> OutboxFile.Delivery? {
        let end = EventLoop.now + 2_000_000
        while true {
            if let right = file.delivery() { return right }
            guard waits || outboxes.hasBoxed(domain), file.exists, EventLoop.now < end else { return nil }
            try? await Task.sleep(for: .milliseconds(20))
        }
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
