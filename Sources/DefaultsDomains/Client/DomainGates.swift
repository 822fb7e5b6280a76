// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import PropertyList
internal import Synchronization
internal import UbiquitousStore

/// The domains that a process has asked for, and who waits for them.
///
/// A domain's gate opens once its answer is here, or there is none to be had.
final class DomainGates: Sendable {
    private struct State {
        var gates: [Text: Gate] = [:]
        var isAbsent = false
    }

    private let state = Mutex(State())

    /// The service has not been found, and nothing is waited for.
    var isAbsent: Bool { state.withLock { $0.isAbsent } }

    /// The domains that are wanted.
    var wanted: [Text] { state.withLock { Array($0.gates.keys) } }

    /// Domains are wanted.
    /// - Returns: those that were not before, and whether the service is absent.
    func want(_ domains: [Text]) -> (missing: [Text], isAbsent: Bool) {
        state.withLock { state in
            let missing = domains.filter { state.gates[$0] == nil }
            for domain in missing {
                let gate = Gate()
                if state.isAbsent { gate.open() }
                state.gates[domain] = gate
            }
            return (missing, state.isAbsent)
        }
    }

    /// Waits until domains are here.
    func wait(for domains: [Text], atMost seconds: Double) {
        let gates = state.withLock { state in domains.compactMap { state.gates[$0] } }
        let end = DispatchTime.now() + seconds
        for gate in gates { _ = gate.wait(until: end) }
    }

    /// The service has said of domains all that it will: who waits for them goes on.
    func open(_ domains: some Sequence<Text>) {
        for gate in state.withLock({ state in domains.compactMap { state.gates[$0] } }) { gate.open() }
    }

    /// Who waits goes on with what is here.
    func openAll() {
        for gate in state.withLock({ Array($0.gates.values) }) { gate.open() }
    }

    /// The service is there.
    func found() { state.withLock { $0.isAbsent = false } }

    /// There is no way to the service.
    /// - Returns: the domains that are wanted.
    func lost() -> [Text] {
        state.withLock { state in
            state.isAbsent = true
            return Array(state.gates.keys)
        }
    }
}
