// SPDX-License-Identifier: Apache-2.0

// Observing changes by this process and by others. Foundation on Linux has no key-value observing; this file provides
// Apple's method for it, with its types.

public import Foundation
internal import PropertyList
internal import StoreBus
internal import Synchronization
internal import UbiquitousStore

extension UserDefaults {
    /// Keys whose effective value changed, or a write that was refused.
    public struct Change: Sendable {
        /// The reason.
        public let reason: Reason
        /// The keys, sorted by their UTF-8.
        public let keys: [String]
        /// Why a write of this process was refused and reverted; only with ``Reason/refused``.
        public let error: (any Error)?
        private let values: [String: SearchList.Change]

        init(_ change: DefaultsChange) {
            reason = Reason(rawValue: change.reason)
            keys = change.changes.map(\.key).sorted().map(\.string)
            error = change.error
            values = [String: SearchList.Change](change.changes.map { ($0.key.string, $0) }) { $1 }
        }

        /// Returns the effective value before the change; `nil` if there was none, or the key isn't one of ``keys``.
        public func oldObject(forKey key: String) -> Any? { values[key]?.old?.object }

        /// Returns the effective value after the change; `nil` if there is none, or the key isn't one of ``keys``.
        public func newObject(forKey key: String) -> Any? { values[key]?.new?.object }

        /// Returns the effective value before the change, or the key's default if there was none.
        public func oldValue<Value>(for key: Key<Value>) -> Value {
            values[key.name]?.old.flatMap { key.decode($0) } ?? key.defaultValue
        }

        /// Returns the effective value after the change, or the key's default if there is none.
        public func newValue<Value>(for key: Key<Value>) -> Value {
            values[key.name]?.new.flatMap { key.decode($0) } ?? key.defaultValue
        }

        /// The reason for a change. Later versions may add more.
        public struct Reason: RawRepresentable, Sendable, Hashable {
            /// The reason's number. Those below 65536 are the D-Bus interface's.
            public let rawValue: UInt32

            /// Makes a reason from its number.
            public init(rawValue: UInt32) { self.rawValue = rawValue }

            /// This process wrote.
            public static let ownProcess = Reason(rawValue: ChangeReason.own)
            /// Another process of this device wrote.
            public static let otherProcess = Reason(rawValue: ChangeReason.local)
            /// Another device wrote a key that roams.
            public static let otherDevice = Reason(rawValue: ChangeReason.server)
            /// The account's values of keys that roam have arrived for the first time.
            public static let initialSync = Reason(rawValue: ChangeReason.initialSync)
            /// The user has signed in, signed out or switched accounts.
            public static let account = Reason(rawValue: ChangeReason.account)
            /// An administrator has changed the managed settings.
            public static let managed = Reason(rawValue: ChangeReason.managed)
            /// A write of this process was refused and reverted.
            public static let refused = Reason(rawValue: ChangeReason.quotaViolation)
        }
    }

    /// Changes from now on. At most 64 wait for a slow loop; beyond that the oldest are dropped.
    public var changes: AsyncStream<Change> {
        AsyncStream(bufferingPolicy: .bufferingNewest(64)) { continuation in
            let box = box
            let observer = box.observe { continuation.yield(Change($0)) }
            continuation.onTermination = { _ in box.stopObserving(observer) }
        }
    }

    /// Returns the effective values of a key, the present one first. A slow loop skips intermediate values.
    public func values<Value>(of key: Key<Value>) -> Values<Value> {
        Values(of: Text(key.name), box) { self[key] }
    }

    /// Calls `handler` on a serial queue after each change of a key's effective value, whoever makes it, until the
    /// returned token is released or invalidated.
    public func observe(
        _ key: String, options: NSKeyValueObservingOptions = [],
        changeHandler handler: @escaping @Sendable (UserDefaults, NSKeyValueObservedChange<Any>) -> Void
    ) -> NSKeyValueObservation {
        let name = Text(key)
        let token = NSKeyValueObservation(box)
        if options.contains(.initial) {
            handler(self, NSKeyValueObservedChange(options, old: nil, new: object(forKey: key)))
        }
        token.begin { [weak self] change in
            guard change.error == nil, let self, let found = change.changes.first(where: { $0.key == name }) else {
                return
            }
            handler(self, NSKeyValueObservedChange(options, old: found.old?.object, new: found.new?.object))
        }
        return token
    }

    /// Calls `handler` on a serial queue when the value of a key path may have changed, until the returned token is
    /// released or invalidated, as Apple's call does.
    ///
    /// The path is evaluated on that queue at each change of any setting, even if its properties are isolated to
    /// an actor, as with Apple's call. The handler isn't called if the value is comparable and the same as before.
    public func observe<Value>(
        _ keyPath: KeyPath<UserDefaults, Value>, options: NSKeyValueObservingOptions = [],
        changeHandler handler: @escaping @Sendable (UserDefaults, NSKeyValueObservedChange<Value>) -> Void
    ) -> NSKeyValueObservation {
        nonisolated(unsafe) let keyPath = keyPath
        // Unsafe only for properties that use more of an actor than settings, and for paths with subscripts of objects.
        let token = NSKeyValueObservation(box)
        let initial = self[keyPath: keyPath]
        let known = Known(initial)
        if options.contains(.initial) {
            handler(self, NSKeyValueObservedChange(options, old: nil, new: initial))
        }
        token.begin { [weak self] change in
            guard change.error == nil, let self else { return }
            let new = self[keyPath: keyPath]
            guard let old = known.replace(by: new) else { return }
            handler(self, NSKeyValueObservedChange(options, old: old, new: new))
        }
        return token
    }
}

extension UserDefaults {
    /// The effective values of a setting, from the start of a loop.
    ///
    /// They are converted where the loop runs, because the conformances of their type may be an actor's.
    public struct Values<Value>: AsyncSequence {
        private let signals: AsyncStream<Void>
        private let read: () -> Value

        init(of key: Text, _ box: SearchBox, _ read: @escaping () -> Value) {
            self.read = read
            signals = AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
                let observer = box.observe { change in
                    guard change.error == nil, change.changes.contains(where: { $0.key == key }) else { return }
                    continuation.yield()
                }
                continuation.yield()
                continuation.onTermination = { _ in box.stopObserving(observer) }
            }
        }

        /// Begins a loop.
        public func makeAsyncIterator() -> Iterator { Iterator(signals: signals.makeAsyncIterator(), read: read) }

        /// The position of a loop.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var signals: AsyncStream<Void>.Iterator
            fileprivate let read: () -> Value

            /// Returns the present value, once it isn't the one that was returned before; `nil` if the task is cancelled.
            public mutating func next() async -> Value? { await next(isolation: #isolation) }

            /// Does the same on the loop's actor.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> Value? {
                await signals.next(isolation: actor) == nil ? nil : read()
            }
        }
    }
}

extension UserDefaults.Values: @unchecked Sendable where Value: Sendable {
    // @unchecked because of the closure, which reads a value as ``AppStorage`` does.
}

/// The value that an observer was last notified of.
private final class Known<Value>: @unchecked Sendable {
    // @unchecked because the value may be of any type; it is accessed only under the lock.
    private let lock = NSLock()
    private var value: Value

    init(_ value: Value) { self.value = value }

    /// Replaces the value, and returns the former one; `nil` if they are equal.
    func replace(by new: Value) -> Value? {
        lock.withLock {
            if Self.areEqual(value, new) { return nil }
            defer { value = new }
            return value
        }
    }

    /// Compares dictionaries and arrays of `Any` as property lists.
    private static func areEqual(_ old: Value, _ new: Value) -> Bool {
        let areNone = [old, new].map { ($0 as? any OptionalValue)?.isNone == true }
        if areNone[0] || areNone[1] { return areNone[0] == areNone[1] }
        if let old = old as? any Equatable { return isEqual(old, new) }
        guard let old = try? PropertyList.Value(object: old) else { return false }
        return (try? PropertyList.Value(object: new)) == old
    }

    private static func isEqual<T: Equatable>(_ old: T, _ new: Any) -> Bool { (new as? T) == old }
}

/// A token of an observation, which ends when the token is released or ``invalidate()`` is called.
public final class NSKeyValueObservation: NSObject, @unchecked Sendable {
    // @unchecked because NSObject isn't Sendable; the properties are.
    private let box: SearchBox
    private let changes = ObservedChanges()
    private let observer: UUID

    /// Observes from now on, and keeps the changes until ``begin(_:)``.
    init(_ box: SearchBox) {
        self.box = box
        observer = box.observe { [changes] in changes.receive($0) }
        super.init()
    }

    deinit { invalidate() }

    /// Calls `action` on the queue with the changes so far, and with each one from now on.
    fileprivate func begin(_ action: @escaping ObservedChanges.Action) {
        changes.begin(action)
        DefaultsProcess.queue.async { [changes] in changes.flush() }
    }

    /// Ends the observation.
    public func invalidate() {
        box.stopObserving(observer)
        changes.end()
    }
}

/// The changes of an observation, which wait until its first value was read and passed on. Otherwise one could be missed
/// in between, or arrive before that value.
private final class ObservedChanges: Sendable {
    typealias Action = @Sendable (DefaultsChange) -> Void

    private struct State {
        var action: Action?
        /// The changes that wait; `nil` once they are passed on as they come.
        var waiting: [DefaultsChange]? = []
    }

    private let state = Mutex(State())

    /// Takes a change, on the queue.
    func receive(_ change: DefaultsChange) {
        let action = state.withLock { state in
            state.waiting?.append(change)
            return state.waiting == nil ? state.action : nil
        }
        action?(change)
    }

    func begin(_ action: @escaping Action) { state.withLock { $0.action = action } }

    /// Passes on what has waited, on the queue.
    func flush() {
        for change in state.withLock({ $0.waiting.take() }) ?? [] { receive(change) }
    }

    /// Passes on nothing more.
    func end() {
        // What the action holds is released outside of the lock.
        let action = state.withLock { $0.action.take() }
        withExtendedLifetime(action) {}
    }
}

/// Which values an observer receives, and when.
public struct NSKeyValueObservingOptions: OptionSet, Sendable {
    /// The bits, with Apple's meanings.
    public let rawValue: UInt

    /// Makes options from their bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// The value after the change.
    public static let new = NSKeyValueObservingOptions(rawValue: 1)
    /// The value before the change.
    public static let old = NSKeyValueObservingOptions(rawValue: 2)
    /// Also call the handler at once.
    public static let initial = NSKeyValueObservingOptions(rawValue: 4)
    /// Has no effect here, because the library learns of a change only afterwards. On Apple's systems the handler is
    /// also called before a change.
    public static let prior = NSKeyValueObservingOptions(rawValue: 8)
}

/// A change, as an observer receives it.
public struct NSKeyValueObservedChange<Value> {
    /// The value after the change, with the option ``NSKeyValueObservingOptions/new``; `nil` if there is none.
    public let newValue: Value?
    /// The value before the change, with the option ``NSKeyValueObservingOptions/old``; `nil` if there was none.
    public let oldValue: Value?
    /// Always false; see ``NSKeyValueObservingOptions/prior``.
    public var isPrior: Bool { false }

    init(_ options: NSKeyValueObservingOptions, old: Value?, new: Value?) {
        newValue = options.contains(.new) ? new : nil
        oldValue = options.contains(.old) ? old : nil
    }
}
