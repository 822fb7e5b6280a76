// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import PropertyList
internal import StoreBus
internal import Synchronization
internal import UbiquitousStore

/// A search list behind a lock that is held for a lookup, and the observers of the values that it finds.
final class SearchBox: Sendable {
    let own: Text
    let process: DefaultsProcess
    let list: Mutex<SearchList>
    /// Whether the domains have arrived, or waiting for them is of no use.
    private let isReady = Atomic<Bool>(false)
    private let observers = Observers<DefaultsChange>()
    /// Whether properties observe changes.
    private let isObservedForStorage = Atomic<Bool>(false)

    init(own: Text, process: DefaultsProcess) {
        self.own = own
        self.process = process
        list = Mutex(SearchList(own: own))
        process.add(self)
    }

    deinit { process.remove(ObjectIdentifier(self)) }

    /// Runs `body` with the search list.
    func read<T>(_ body: (SearchList) -> T) -> T {
        becomeReady()
        return list.withLock { body($0) }
    }

    func value(_ key: String) -> Value? {
        becomeReady()
        let key = Text(key)
        return list.withLock { $0.found[key]?.value }
    }

    /// Waits a while until everything that is searched has arrived.
    func becomeReady() {
        if !isReady.load(ordering: .acquiring) { awaitReady() }
    }

    private func awaitReady() {
        let domains = list.withLock { $0.domains }
        process.awaitDomains(domains)
        process.awaitRoaming(own)
        // Another thread may have added one meanwhile, for which the next read has to wait.
        list.withLock { if $0.domains == domains { isReady.store(true, ordering: .releasing) } }
    }

    /// Notes that more domains are searched, so that the next read waits for them.
    func searchesMore() { isReady.store(false, ordering: .releasing) }

    // MARK: Observers

    /// Calls `action` on the serial queue, with each change of an effective value and with each refused write.
    func observe(_ action: @escaping @Sendable (DefaultsChange) -> Void) -> UUID {
        // The first values are not a change.
        becomeReady()
        return observers.add(action)
    }

    /// Observes for properties, which share one observer as long as this object lives.
    func observeForStorage(_ action: @escaping @Sendable (DefaultsChange) -> Void) {
        if !isObservedForStorage.exchange(true, ordering: .relaxed) { _ = observe(action) }
    }

    func stopObserving(_ observer: UUID) {
        observers.remove(observer)
    }

    /// Notifies the observers.
    func tell(_ change: DefaultsChange) {
        if observers.isEmpty { return }
        DefaultsProcess.queue.async { [self] in observers.tell(change) }
    }
}

/// A change, as observers see it.
struct DefaultsChange: Sendable {
    /// Why the values changed.
    var reason: UInt32
    /// Keys with their effective values before and after.
    var changes: [SearchList.Change]
    /// Why a write was refused and taken back; `nil` if none was.
    var error: (any Error)?
}

extension ChangeReason {
    /// This process wrote. Only the library uses this reason; no signal has it.
    static let own: UInt32 = 1 << 16
}

extension UserDefaults {
    /// Whether there are writes that the service has not acknowledged.
    package var isUnsettled: Bool { box.process.isUnsettled }

    /// Calls `action` after observers were notified of everything that has happened until now.
    package static func afterObservers(_ action: @escaping @Sendable () -> Void) {
        DefaultsProcess.queue.async(execute: action)
    }
}
