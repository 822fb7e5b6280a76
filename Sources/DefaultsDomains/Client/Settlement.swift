// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation
internal import PropertyList
internal import SDBus
internal import Synchronization
internal import UbiquitousStore

/// Waits a while for the service to take what was written, and keeps the rest in outboxes: on request, and at the end
/// of the process.
struct Settlement {
    let process: DefaultsProcess

    /// How long to wait, in seconds.
    static let patience = 1.0

    /// Waits until the service has everything that was written, and puts the rest into outboxes.
    ///
    /// - Returns: whether everything is in the service or in an outbox.
    func settle() -> Bool {
        // A forked child has copies of the parent's locks, which nobody may ever unlock, and none of its threads.
        guard OwnProcess.isThis else { return false }
        defer { process.logRefusals() }
        guard !process.gates.isAbsent, EventLoop.shared.isIsolatingCurrentContext() != true else {
            return fillOutboxes()
        }
        let end = DispatchTime.now() + Self.patience
        // The first answer, or its absence, tells whether there is a service to wait for.
        process.gates.wait(for: process.gates.wanted, atMost: Self.patience)
        if process.gates.isAbsent { return fillOutboxes() }
        for mirror in process.unsettledMirrors {
            let gate = Gate()
            Task {
                await mirror.settle()
                gate.open()
            }
            _ = gate.wait(until: end)
        }
        process.removeSuperseded()
        for layer in process.unsettled {
            let gate = Gate()
            let waits = process.state.withLock { state in
                let ticket = state.waiters.add { _ in gate.open() }
                if state.layers[layer]?.wait(ticket) == true { return true }
                _ = state.waiters.remove(ticket)
                return false
            }
            if waits { _ = gate.wait(until: end) }
        }
        return fillOutboxes()
    }

    /// Waits until everything that was set is on disk, in the service's database or in outboxes.
    ///
    /// - Parameter domain: any domain in the database that is synced.
    func synchronize(_ domain: Text) -> Bool {
        let isKept = settle()
        guard isKept, !process.isUnsettled, EventLoop.shared.isIsolatingCurrentContext() != true,
            !process.gates.isAbsent
        else { return isKept }
        let gate = Gate()
        EventLoop.task { [link = process.link] in gate.open((try? await link.synchronize(domain)) != nil) }
        return gate.wait(atMost: Self.patience) ?? false
    }

    /// Puts writes that the service has not acknowledged into outboxes.
    ///
    /// - Returns: whether all of them are there.
    func fillOutboxes() -> Bool {
        let domains = process.state.withLock { state in
            Set(state.layers.keys.compactMap(\.place?.domain)).union(state.roaming.keys)
        }
        return process.outboxes.fill(domains, pending: process.pendingWrites)
    }

    /// Fills the outboxes on their queue.
    func fillOutboxesSoon() {
        DefaultsProcess.outboxQueue.async { if process.isUnsettled { _ = fillOutboxes() } }
    }
}
