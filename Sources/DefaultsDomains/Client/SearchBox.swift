// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import PropertyList
internal import Synchronization

/// A search list behind a lock that is held for a lookup, and those who are told when what it finds is another value.
final class SearchBox: Sendable {
    let own: Text
    let process: DefaultsProcess
    let list: Mutex<SearchList>
    /// Opened when the domains are here, or when waiting for them is of no use.
    private let isReady = Atomic<Bool>(false)
    private let observers = Mutex<[UUID: @Sendable (DefaultsChange) -> Void]>([:])
    /// Whether properties are told of changes.
    private let isObservedForStorage = Atomic<Bool>(false)

    init(own: Text, process: DefaultsProcess) {
        self.own = own
        self.process = process
        list = Mutex(SearchList(own: own))
        process.add(self)
    }

    deinit { process.remove(ObjectIdentifier(self)) }

    /// Runs with what the search finds.
    func read<T>(_ body: (SearchList) -> T) -> T {
        becomeReady()
        return list.withLock { body($0) }
    }

    func value(_ key: String) -> Value? {
        becomeReady()
        let key = Text(key)
        return list.withLock { $0.found[key]?.value }
    }

    /// Waits for a while until everything is here that the search looks in.
    func becomeReady() {
        if !isReady.load(ordering: .acquiring) { awaitReady() }
    }

    private func awaitReady() {
        process.awaitDomains(list.withLock { $0.domains })
        process.awaitRoaming(own)
        isReady.store(true, ordering: .releasing)
    }

    /// More domains are searched: the next read waits for them.
    func searchesMore() { isReady.store(false, ordering: .releasing) }

    // MARK: Observers

    /// Calls `action` with each change of an effective value, and with writes that are refused; on the serial queue.
    func observe(_ action: @escaping @Sendable (DefaultsChange) -> Void) -> UUID {
        // What arrives first is no change.
        becomeReady()
        let observer = UUID()
        observers.withLock { $0[observer] = action }
        return observer
    }

    /// The same for properties, which share one observer for as long as this lives.
    func observeForStorage(_ action: @escaping @Sendable (DefaultsChange) -> Void) {
        if !isObservedForStorage.exchange(true, ordering: .relaxed) { _ = observe(action) }
    }

    func stopObserving(_ observer: UUID) {
        observers.withLock { $0[observer] = nil }
    }

    /// Tells the observers.
    func tell(_ change: DefaultsChange) {
        if observers.withLock({ $0.isEmpty }) { return }
        DefaultsProcess.queue.async { [self] in
            for observer in observers.withLock({ Array($0.keys) }) {
                // One that was called before may have ended it.
                observers.withLock { $0[observer] }?(change)
            }
        }
    }
}

/// What observers are told.
struct DefaultsChange: Sendable {
    /// Why.
    var reason: UInt32
    /// Keys with their effective values before and after.
    var changes: [SearchList.Change]
    /// Why a write was refused, and taken back.
    var error: (any Error)?

    /// This process wrote.
    static let own: UInt32 = 1 << 16
    /// A write was refused.
    static let refused: UInt32 = 2
    /// Another process of this device wrote.
    static let otherProcess: UInt32 = 16
    /// The first download of the account is complete.
    static let initialSync: UInt32 = 1
    /// The person has signed in, out, or to another account.
    static let account: UInt32 = 3
    /// An administrator.
    static let managed: UInt32 = 32
}

extension UserDefaults {
    /// Whether something that was set has not been acknowledged.
    package var isUnsettled: Bool { box.process.isUnsettled }

    /// Calls `action` when observers have been told of everything that happened until now.
    package static func afterObservers(_ action: @escaping @Sendable () -> Void) {
        DefaultsProcess.queue.async(execute: action)
    }
}
