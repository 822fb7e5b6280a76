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
    private let program: String?
    private let delivered: ([Outbox.Write]) async -> Void

    /// - Parameters:
    ///   - program: the path of this program, whose own domain it may be; `nil` if it isn't.
    ///   - delivered: is called with writes that the service has taken or refused, or for which it has kept a newer
    ///     value.
    package init(
        domain: Text, from outboxes: Outboxes, over connection: ServiceConnection, program: String? = nil,
        _ delivered: @escaping ([Outbox.Write]) async -> Void = { _ in }
    ) {
        (self.domain, self.connection, self.program, self.delivered) = (domain, connection, program, delivered)
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
        var (left, failure) = ([Outbox.Write](), (any Error)?.none)
        if file.abandoned().isEmpty { return }
        var roaming: [Text?: RoamingKeys?] = [:]
        for writer in Set(file.abandoned().map(\.program)) { roaming[writer] = try await roamingKeys(of: writer) }
        func place(_ write: Outbox.Write) -> OutboxTarget? {
            roaming[write.program].map { OutboxTarget(write, of: domain, $0) }
        }
        for target in Set(file.abandoned().compactMap(place)) {
            // A process may have replaced some of them meanwhile, and sent what replaces them.
            let found = file.abandoned().filter { place($0) == target }
            // What can't be removed is delivered again. Then only those do no harm that know which values they follow.
            let isOnce = file.canRemove(left + found)
            let writes = found.filter { isOnce || $0.generation > 0 }
            if writes.isEmpty { continue }
            do {
                let settled = try await deliver(writes, to: target)
                await delivered(settled)
                left += settled
                // On a full disk, only an outbox of which nothing is left can be removed.
                if (try? file.remove(left)) != nil { left = [] }
            } catch {
                failure = error
            }
        }
        if !left.isEmpty { try file.remove(left) }
        if let failure { throw failure }
    }

    /// Returns which keys roam, and where to, for the program that wrote; `nil` if the service doesn't say it.
    private func roamingKeys(of writer: Text?) async throws -> RoamingKeys? {
        try await connection.openDomains([domain.string], program: writer?.string ?? program, subscribing: false).first
            .flatMap(RoamingKeys.init)
    }

    /// - Returns: the writes that the service has taken, or will never take. Those for which it has no room now stay for
    ///   the next time, if they know which values they follow; others would replace later ones then.
    private func deliver(_ writes: [Outbox.Write], to target: OutboxTarget) async throws -> [Outbox.Write] {
        var rest = [writes[...]]
        var settled: [Outbox.Write] = []
        var refused = (lost: [Text](), reason: UbiquitousStoreError?.none)
        while let part = rest.popLast() {
            do {
                try await (part.count == 1 ? Patience() : .none).call {
                    try await connection.deliver(Array(part), to: target)
                }
                settled += part
            } catch let error as UbiquitousStoreError where error.isRefusal {
                // In halves, only those fail in the end that the service refuses by themselves.
                let middle = (part.startIndex + part.endIndex) / 2
                if part.count > 1 {
                    rest += [part[middle...], part[..<middle]]
                    continue
                }
                let all = error.isRefusalOfAll ? Array(([part] + rest).joined()) : Array(part)
                if error.isRefusalOfAll { rest = [] }
                // The user's other programs may have used up what a user may have under way.
                let kept = error.code == .limitsExceeded ? all.filter { $0.generation > 0 } : []
                if !kept.isEmpty {
                    logDefaults(kept.map(\.key), "of \(target.name) wait for the next start: \(error)")
                }
                let lost = all.filter { !kept.contains($0) }
                if lost.isEmpty { continue }
                refused = (refused.lost + lost.map(\.key), refused.reason ?? error)
                settled += lost
            }
        }
        if let reason = refused.reason {
            let verb = refused.lost.count == 1 ? "was not stored and is" : "were not stored and are"
            logDefaults(refused.lost, "of \(target.name) \(verb) lost: \(reason)")
        }
        return settled
    }
}
