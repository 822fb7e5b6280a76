// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import PropertyList
internal import Synchronization
internal import UbiquitousStore

/// The domains that a process has asked for, and the threads that wait for them.
///
/// A domain's gate opens once its answer has arrived, or can't be expected.
final class DomainGates: Sendable {
    private struct State {
        var gates: [Text: Gate] = [:]
        var isAbsent = false
        var isSilent = false
        var answers = 0
    }

    private let state = Mutex(State())

    /// Whether the service was not found, so that nothing waits for it.
    var isAbsent: Bool { state.withLock { $0.isAbsent } }

    /// Whether a thread has waited in vain, and nothing has arrived since; and how often something has arrived.
    var silence: (isSilent: Bool, answers: Int) { state.withLock { ($0.isSilent, $0.answers) } }

    /// Notes that a thread has waited in vain, so that no other has to find that out.
    /// - Parameter answers: how often something had arrived before it waited.
    func becomeSilent(since answers: Int) { state.withLock { $0.isSilent = $0.isSilent || $0.answers == answers } }

    /// The domains that are wanted.
    var wanted: [Text] { state.withLock { Array($0.gates.keys) } }

    /// Adds wanted domains.
    /// - Returns: those that were not wanted before, and whether the service is absent.
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

    /// Waits until the gates of domains are open, for a number of seconds at most.
    /// - Returns: whether all are open.
    @discardableResult
    func wait(for domains: [Text], atMost seconds: Double) -> Bool {
        let gates = state.withLock { state in domains.compactMap { state.gates[$0] } }
        let end = DispatchTime.now() + seconds
        return gates.reduce(true) { $1.wait(until: end) != nil && $0 }
    }

    /// Opens the gates of domains, because the service has answered.
    func open(_ domains: some Sequence<Text>) {
        for gate in state.withLock({ state in domains.compactMap { state.gates[$0] } }) { gate.open() }
    }

    /// Opens all gates, so that threads continue with what is known.
    func openAll() {
        for gate in state.withLock({ Array($0.gates.values) }) { gate.open() }
    }

    /// Notes that the service has answered.
    func found() { state.withLock { ($0.isAbsent, $0.isSilent, $0.answers) = (false, false, $0.answers + 1) } }

    /// Notes that the service can't be reached.
    /// - Returns: the wanted domains.
    func lost() -> [Text] {
        state.withLock { state in
            state.isAbsent = true
            return Array(state.gates.keys)
        }
    }
}
