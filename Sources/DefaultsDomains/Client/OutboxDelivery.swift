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
    private let delivered: ([Outbox.Write]) async -> Void

    /// - Parameter delivered: is called with writes that the service has taken or refused, or for which it has kept a
    ///   newer value.
    package init(
        domain: Text, from outboxes: Outboxes, over connection: ServiceConnection,
        _ delivered: @escaping ([Outbox.Write]) async -> Void = { _ in }
    ) {
        (self.domain, self.connection, self.delivered) = (domain, connection, delivered)
        file = outboxes.file(domain)
    }

    /// Delivers the outbox. What the service doesn't answer stays for the next time.
    ///
    /// - Parameter end: until when to wait if another process is delivering, or if processes that run have not sent yet
    ///   what they have put there, as a time of the event loop; `nil` not to wait.
    package func run(waitingUntil end: UInt64? = nil) async {
        guard let file else { return }
        var pause = Duration.milliseconds(10)
        while file.exists {
            guard (try? await deliverAbandoned(file)) != nil, let end, file.read() != nil, EventLoop.now < end else {
                return
            }
            try? await Task.sleep(for: pause)
            pause = min(pause * 2, .milliseconds(100))
        }
    }

    /// - Throws: why some of the writes stay for the next time.
    private func deliverAbandoned(_ file: OutboxFile) async throws {
        guard let right = file.delivery() else { return }
        defer { extendLifetime(right) }
        var failure: (any Error)?
        for target in Set(file.abandoned().map { OutboxTarget($0, of: domain) }) {
            // A process may have replaced some of them meanwhile, and sent what replaces them.
            let writes = file.abandoned().filter { OutboxTarget($0, of: domain) == target }
            do {
                try await deliver(writes, to: target)
                await delivered(writes)
                try file.remove(writes)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
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
